/* Euclid's algorithm, with every remainder.
 * Arguments: [A B], 48 and 36 if none are given. */
#include <stdio.h>
#include <stdlib.h>
#include <transputer.h>

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
  print_str("gcd(");
  print_int(a);
  print_str(", ");
  print_int(b);
  print_str(") = ");
  print_int(gcd(a, b));
  putchar('\n');
  return 0;
}
