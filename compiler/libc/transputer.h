/* What the machine offers to a C program, and print and read helpers over it.
 *
 * Every executed WebAssembly instruction costs the model about five tokens, so these routines
 * avoid divisions and pass bytes on one by one; an output byte itself is a single token. */
#ifndef TRANSPUTER_H
#define TRANSPUTER_H

#define TRANSPUTER_IMPORT(name) __attribute__((import_module("transputer"), import_name(name)))

/* The functions below may be replaced by a program's own of the same name: a header's inline
 * body gives way to it (gnu_inline), and the library's symbol does so too (weak). */
#ifndef TRANSPUTER_INLINE
#define TRANSPUTER_INLINE extern inline __attribute__((gnu_inline))
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
/* First byte that malloc has not given away. */
extern char *transputer_break;
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

#endif
