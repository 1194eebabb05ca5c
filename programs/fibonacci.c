/* Fibonacci numbers twice: by a loop and by recursion. The recursion shows calls, returns and
 * locals of their own for every call.
 * Arguments: [N], 7 if none is given. */
#include <stdio.h>
#include <stdlib.h>

unsigned fib_loop(int n) {
  unsigned current = 0, next = 1;
  while (n-- > 0) {
    unsigned sum = current + next;
    current = next;
    next = sum;
  }
  return current;
}

unsigned fib_recursive(int n) {
  return n < 2 ? (unsigned)n : fib_recursive(n - 1) + fib_recursive(n - 2);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 7;
  if (n < 0 || n > 47) {
    puts("N must be 0 to 47");
    return 1;
  }
  unsigned looped = fib_loop(n), recursed = fib_recursive(n);
  printf("loop: %u\nrecursion: %u\n", looped, recursed);
  return looped != recursed;
}
