/* Bit operations on a table of up to 16 KiB: rotate, mix and count, again and again.
 * Arguments: [ROUNDS [WORDS]], 1 and 4096 if none are given; WORDS is a power of two. */
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4096 };
static unsigned table[MOST];

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  unsigned words = argc > 2 ? (unsigned)atoi(argv[2]) : MOST;
  if (!words || words > MOST || words & (words - 1)) {
    puts("WORDS must be a power of two up to 4096");
    return 1;
  }
  unsigned state = 2463534242u, ones = 0;
  for (unsigned i = 0; i < words; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    table[i] = state;
  }
  while (rounds-- > 0) {
    for (unsigned i = 0; i < words; i++) {
      unsigned value = table[i], other = table[(i * 5 + 1) & (words - 1)];
      table[i] = value = (value << 7 | value >> 25) ^ (other & ~state);
      ones += (unsigned)__builtin_popcount(value);
      state += value | 1;
    }
  }
  printf("%u %08x\n", ones, state);
  return 0;
}
