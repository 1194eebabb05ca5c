"""Memory, sorting, time and random numbers in programs with the WASI library."""

from __future__ import annotations

from c_programs import run
from compiler.frontend import to_wasm
from wasi_programs import ended, main


def test_an_overflow_of_the_stack_traps_and_a_larger_stack_helps(tmp_path):
    path = tmp_path / "deep.c"
    path.write_text(main("volatile char a[1100000]; a[argc] = 5; return a[argc];"))
    assert run(to_wasm(path, libc="wasi").wasm).trap == "out of bounds memory access"
    assert run(to_wasm(path, libc="wasi", stack_bytes=1 << 21).wasm).exit_code == 5


MEMORY = r"""
  static unsigned char *block[200]; static size_t size[200];
  unsigned state = 1, held = 0;
  for (int step = 0; step < 3000; step++) {
    state = state * 1664525 + 1013904223;
    unsigned i = (state >> 8) % 200, n = (state >> 16) % ((state >> 4) % 7 ? 300 : 90000);
    if (block[i]) for (size_t k = 0; k < size[i]; k += 1 + size[i] / 5) if (block[i][k] != (unsigned char)(i + k)) return 1;
    unsigned char *p;
    switch (state >> 29) {
      case 0: case 1: free(block[i]); block[i] = 0; size[i] = 0; continue;
      case 2: p = realloc(block[i], n); if (p) for (size_t k = 0; k < size[i] && k < n; k += 1 + size[i] / 5) if (p[k] != (unsigned char)(i + k)) return 2; break;
      case 3: free(block[i]); p = calloc(n / 4, 4); n = n / 4 * 4; if (p) for (size_t k = 0; k < n; k++) if (p[k]) return 3; break;
      case 4: free(block[i]); p = aligned_alloc(64, n); HIDE(p); if ((size_t)p % 64) return 4; break;
      default: free(block[i]); p = malloc(n); HIDE(p); if ((size_t)p % 16) return 5;
    }
    if (!p && n) return 6;
    block[i] = p; size[i] = p ? n : 0; held++;
    for (size_t k = 0; k < size[i]; k++) p[k] = (unsigned char)(i + k);
  }
  for (int i = 0; i < 200; i++) for (int k = 0; k < i; k++)
    if (block[i] && block[k] && size[i] && block[i] < block[k] + size[k] && block[k] < block[i] + size[i]) return 7;
  return held > 1000 ? 0 : 8;
"""  # noqa: E501


def test_memory_functions_keep_what_they_hold():
    hide = '#define HIDE(p) __asm__("" : "+r"(p)) /* its alignment must not be taken for granted */'
    assert ended(main(MEMORY, hide)).exit_code == 0


def test_memory_that_is_used_up():
    text = main(
        r"""
  size_t total = 0, blocks = 0; void *last = 0;
  for (void *p; (p = malloc(10000)); total += 10000, blocks++) *(void **)p = last, last = p;
  if (errno != ENOMEM) return 1;
  void *volatile all[] = {
      malloc(-1u), malloc(-1u / 2), calloc(65536, 65536), realloc(last, 1u << 31)};
  for (int i = 0; i < 4; i++) if (all[i]) return 2;
  void *end; if (posix_memalign(&end, 1 << 20, 1 << 25) != ENOMEM || aligned_alloc(24, 1)) return 3;
  if (sbrk(1 << 25) != (void *)-1) return 4;
  for (void *p = last; p; p = last) last = *(void **)p, free(p);
  if (!malloc(10000)) return 5;
  printf("%zu", total / 1000000); return 0;
"""
    )
    assert ended(text).output == b"9"  # blocks of 2^14 bytes in 15 MiB


def test_sorting_is_stable_and_right_for_every_size():
    text = main(
        r"""
  static struct { short key; char pad[3]; int place; } item[100];
  unsigned state = 7;
  for (int n = 0; n < 100; n++) {
    for (int i = 0; i < n; i++) {
      state = state * 69069 + 1;
      item[i].key = state >> 28, item[i].place = i;
    }
    qsort(item, n, sizeof *item, compare);
    for (int i = 1; i < n; i++)
      if (item[i - 1].key > item[i].key ||
          (item[i - 1].key == item[i].key && item[i - 1].place > item[i].place)) return 1;
  }
  return 0;
""",
        "static int compare(const void *a, const void *b) { return *(short *)a - *(short *)b; }",
    )
    assert ended(text).exit_code == 0


def test_time_goes_on_and_random_numbers_repeat():
    text = main(
        r"""
  time_t start = time(0); clock_t ticks = clock();
  while (clock() - ticks < CLOCKS_PER_SEC / 100) {}
  struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
  usleep(5000); nanosleep(&(struct timespec){2, 0}, 0);
  struct tm *now = gmtime(&start);
  unsigned char bytes[4]; getentropy(bytes, 4);
  printf("%d %d %02x%02x%02x%02x", now->tm_year, time(0) - start >= 2, bytes[0], bytes[1], bytes[2],
         bytes[3]);
  return 0;
"""
    )
    assert ended(text).output == ended(text).output
    assert ended(text).output.startswith(b"100 1 ")
