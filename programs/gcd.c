/* Euclid's algorithm, with every remainder.
 * Arguments: [A B], 48 and 36 if none are given. */
#include <stdio.h>
#include <stdlib.h>

int gcd(int a, int b) {
  while (b) {
    int remainder = a % b;
    a = b;
    b = remainder;
  }
  return a;
}

int main(int argc, char **argv) {
  int a = argc > 2 ? atoi(argv[1]) : 48, b = argc > 2 ? atoi(argv[2]) : 36;
  if (a < 1 || b < 1) {
    puts("both numbers must be at least 1");
    return 1;
  }
  printf("gcd(%d, %d) = %d\n", a, b, gcd(a, b));
  return 0;
}
