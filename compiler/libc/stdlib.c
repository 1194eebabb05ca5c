#define TRANSPUTER_INLINE __attribute__((weak))
#include "stdlib.h"

#define WEAK __attribute__((weak))

WEAK void exit(int code) { transputer_exit(code); }

WEAK void abort(void) { __builtin_trap(); }

WEAK int atoi(const char *text) {
  unsigned number = 0, digit;
  while (*text == ' ' || (unsigned)*text - '\t' < 5) text++;
  int negative = *text == '-';
  if (negative || *text == '+') text++;
  for (; (digit = (unsigned)*text - '0') <= 9; text++) number = number * 10 + digit;
  return (int)(negative ? -number : number);
}

WEAK void *malloc(size_t size) {
  unsigned block = ((unsigned)transputer_break + 7) & ~7u;
  unsigned end = (unsigned)transputer_heap_end();
  if (block > end || size > end - block) return 0;
  transputer_break = (char *)(block + size);
  return (void *)block;
}

/* Memory that was never given away is zero. */
WEAK void *calloc(size_t count, size_t size) {
  if ((count | size) > 0xffff) return 0; /* larger than any heap, or the product may wrap */
  return malloc(count * size);
}

WEAK void free(void *block) { (void)block; }

static unsigned state = 2463534242u;

WEAK int rand(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return (int)(state & RAND_MAX);
}

WEAK void srand(unsigned seed) { state = seed ? seed : 2463534242u; }
