/* Ackermann's function: nothing but deep recursion.
 * Arguments: [M N], 2 and 2 if none are given. */
#include <stdio.h>
#include <stdlib.h>

static int calls;

int ackermann(int m, int n) {
  calls++;
  if (m == 0) return n + 1;
  return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

int main(int argc, char **argv) {
  int m = argc > 2 ? atoi(argv[1]) : 2, n = argc > 2 ? atoi(argv[2]) : 2;
  if (m < 0 || n < 0 || m > 3) {
    puts("M must be 0 to 3, and N at least 0");
    return 1;
  }
  int value = ackermann(m, n);
  printf("%d after %d calls\n", value, calls);
  return 0;
}
