/* For a program without floating point: what scanf would call to read a number with a point. */
#include <stdio.h>
#include <stdlib.h>

double __floatscan(FILE *stream, int precision, int nothing_is_error) {
  (void)stream, (void)precision, (void)nothing_is_error;
  fputs("scanf of floating point is linked only where the program has a float or double.\n", stderr);
  abort();
}
