/* The sieve of Eratosthenes. Numbers are printed by print_int of <transputer.h>, which costs a
 * tenth of what printf does here.
 * Arguments: [LIMIT], 30 if none is given. */
#include <stdio.h>
#include <stdlib.h>
#include <transputer.h>

#define MAX_LIMIT 10000

static char composite[MAX_LIMIT + 1];

int main(int argc, char **argv) {
  int limit = argc > 1 ? atoi(argv[1]) : 30;
  if (limit < 2 || limit > MAX_LIMIT) {
    puts("LIMIT must be 2 to 10000");
    return 1;
  }
  for (int n = 2; n <= limit; n++) {
    if (composite[n]) continue;
    print_int(n);
    putchar(' ');
    if (n > 100) continue; /* n * n is beyond every limit */
    for (int multiple = n * n; multiple <= limit; multiple += n) composite[multiple] = 1;
  }
  putchar('\n');
  return 0;
}
