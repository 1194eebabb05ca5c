/* Marsaglia's xorshift32 generator: three shifts and three exclusive-ors a number,
 * printed by print_hex of <transputer.h>, which costs a tenth of what printf does here.
 * Arguments: [COUNT [SEED]], 5 and 1 if none are given. */
#include <stdio.h>
#include <stdlib.h>
#include <transputer.h>

static unsigned next(unsigned state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^ state << 5;
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 5;
  unsigned state = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  if (!state) {
    puts("the seed must not be 0");
    return 1;
  }
  while (count-- > 0) {
    state = next(state);
    print_hex(state);
    putchar('\n');
  }
  return 0;
}
