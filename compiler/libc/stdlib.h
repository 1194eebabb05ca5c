/* Standard library: no floating point, no qsort (it needs function pointers). */
#ifndef TRANSPUTER_STDLIB_H
#define TRANSPUTER_STDLIB_H

#include <stddef.h>

#include "transputer.h"

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

TRANSPUTER_INLINE int abs(int value) { return value < 0 ? -value : value; }
TRANSPUTER_INLINE long labs(long value) { return value < 0 ? -value : value; }

__attribute__((noreturn)) void exit(int code);
/* Traps (unreachable). */
__attribute__((noreturn)) void abort(void);
int atoi(const char *text);

/* A heap that only grows: free does nothing, and malloc returns NULL when the memory that the
 * linker laid out behind the data is used up. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void free(void *block);

/* xorshift32; the same numbers in every run that calls srand with the same seed. */
int rand(void);
void srand(unsigned seed);

#endif
