/* The 3n + 1 sequence from a start value down to 1, and its length.
 * Arguments: [START], 6 if none is given. */
#include <stdio.h>
#include <stdlib.h>
#include <transputer.h>

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 6;
  if (n < 1) {
    puts("the start must be at least 1");
    return 1;
  }
  int steps = 0;
  print_int(n);
  for (; n != 1; steps++) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    putchar(' ');
    print_int(n);
  }
  print_str("\nsteps: ");
  print_int(steps);
  putchar('\n');
  return 0;
}
