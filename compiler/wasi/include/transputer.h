/* What the machine offers to a C program, and short print and read functions over <stdio.h>: the
 * same as in the small library, so that a program compiles with either.
 *
 * transputer_output and transputer_input know nothing of the buffers of <stdio.h>. */
#ifndef TRANSPUTER_H
#define TRANSPUTER_H

#include <stddef.h>
#include <stdint.h>

#define TRANSPUTER_IMPORT(name) __attribute__((import_module("transputer"), import_name(name)))

#ifdef __cplusplus
extern "C" {
#endif

/* Write the low byte of `byte` to standard output, to standard error. */
TRANSPUTER_IMPORT("output") void transputer_output(int byte);
TRANSPUTER_IMPORT("error") void transputer_error(int byte);
/* Byte number `k` of the input (from 0), or -1 when `k` is the length of the input. A larger
 * `k` must not be asked for. */
TRANSPUTER_IMPORT("input") int transputer_input(int k);
/* Ends the run with this exit code. */
TRANSPUTER_IMPORT("exit") __attribute__((noreturn)) void transputer_exit(int code);

/* Number of the next input byte; stays at the end of the input. */
extern int transputer_position;
/* The first address that malloc has not given away, a multiple of 16. */
extern char *transputer_break;
/* Which of the streams 0, 1 and 2 have been closed. */
extern unsigned char transputer_closed[3];

/* The end of the memory, and of the heap. */
static inline char *transputer_heap_end(void) {
  return (char *)(__builtin_wasm_memory_size(0) << 16);
}

void print_str(const char *text);
void print_int(int value);
void print_uint(unsigned value);
/* Lower case, without leading zeros: print_hex(255) prints "ff". */
void print_hex(unsigned value);

/* Skips white space (and control characters) and reads a decimal number with an optional sign.
 * Returns 1 and stores the number, 0 if something else stands there (which is left unread), -1 at
 * the end of the input. */
int read_int(int *value);

#ifdef __cplusplus
}
#endif

#endif
