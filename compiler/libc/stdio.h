/* Standard input and output of the small library: no streams, no floating point. */
#ifndef TRANSPUTER_STDIO_H
#define TRANSPUTER_STDIO_H

#include <stddef.h>

#include "transputer.h"

#define EOF (-1)

TRANSPUTER_INLINE int putchar(int byte) {
  transputer_output(byte);
  return byte & 0xff;
}

TRANSPUTER_INLINE int getchar(void) {
  int byte = transputer_input(transputer_position);
  if (byte >= 0) transputer_position++;
  return byte;
}

int puts(const char *text);

/* Conversions: d i u x X c s p %, with the flags - 0 + and space, a width (or *), a precision
 * for s, and the length marks h hh l z t. Any other conversion traps (unreachable). */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Conversions: d u x c s %, with * (nothing is stored), a width, and the length marks l z t. Any
 * other conversion traps (unreachable). A sign is read even where no digit follows. */
int scanf(const char *format, ...) __attribute__((format(scanf, 1, 2)));

#endif
