/* qsort as a merge sort: stable, and a twentieth of the code of the C library's own. */
#include <stdlib.h>
#include <string.h>

typedef int compare_t(const void *, const void *, void *);

/* Sorts `count` elements of `size` bytes at `from`, with as much room at `room`. */
static void merge_sort(char *from, size_t count, size_t size, char *room, compare_t *compare,
                       void *context) {
  if (count < 2) return;
  size_t half = count / 2;
  char *left = from, *right = from + half * size, *middle = right, *end = from + count * size;
  merge_sort(left, half, size, room, compare, context);
  merge_sort(right, count - half, size, room, compare, context);
  if (compare(right - size, right, context) <= 0) return;
  char *to = room;
  while (left < middle && right < end) {
    char **taken = compare(left, right, context) <= 0 ? &left : &right;
    memcpy(to, *taken, size);
    *taken += size;
    to += size;
  }
  /* What is left of the right half is in its place already. */
  memcpy(to, left, (size_t)(middle - left));
  memcpy(from, room, (size_t)(to - room) + (size_t)(middle - left));
}

/* Where there is no room for a copy. */
static void insertion_sort(char *from, size_t count, size_t size, compare_t *compare,
                           void *context) {
  for (size_t i = 1; i < count; i++) {
    for (char *a = from + i * size; a > from && compare(a - size, a, context) > 0; a -= size) {
      for (size_t k = 0; k < size; k++) {
        char byte = a[k];
        a[k] = a[k - size];
        a[k - size] = byte;
      }
    }
  }
}

void qsort_r(void *base, size_t count, size_t size, compare_t *compare, void *context) {
  char *room = count < 2 || !size ? 0 : malloc(count * size);
  if (room) {
    merge_sort(base, count, size, room, compare, context);
    free(room);
  } else if (size) {
    insertion_sort(base, count, size, compare, context);
  }
}

/* The comparison of qsort is the context of that of qsort_r. */
static int without_context(const void *left, const void *right, void *compare) {
  return ((int (*)(const void *, const void *))compare)(left, right);
}

void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *)) {
  qsort_r(base, count, size, without_context, (void *)compare);
}
