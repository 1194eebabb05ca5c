/* The 3n + 1 sequence from a start value down to 1, and its length.
 * Arguments: [START], 6 if none is given. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 6;
  if (n < 1) {
    puts("the start must be at least 1");
    return 1;
  }
  int steps = 0;
  printf("%d", n);
  for (; n != 1; steps++) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    printf(" %d", n);
  }
  printf("\nsteps: %d\n", steps);
  return 0;
}
