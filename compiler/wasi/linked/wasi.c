/* WASI for a module that another compiler made: all calls, without memory of their own.
 * Compiled to wasi.wasm by `python -m compiler.wasi_link`. */
#define TRANSPUTER_LINKED

#include "../system.h"

#include "../files.c"
#include "../streams.c"
#include "../system.c"

/* Goes over the arguments at the head of the input: each is a byte 1, its bytes and a NUL; a byte 0
 * ends the list (Program.input_bytes). With `to` it stores the address of each there and copies
 * them, with their NULs, to `text`. Returns the input byte behind the list. */
static int arguments(unsigned *to, unsigned char *text, int *count) {
  int k = 0, number = 0;
  for (; transputer_input(k++) == 1; number++) {
    if (to) to[number] = (unsigned)text;
    for (int byte = 1; byte; k++) {
      byte = transputer_input(k);
      if (to) *text++ = (unsigned char)byte;
    }
  }
  *count = number;
  return k;
}

static void pass_arguments(void) {
  int count;
  input_position = arguments(0, 0, &count);
}

int WASI(args_sizes_get)(int count, int size) {
  int number, end = arguments(0, 0, &number);
  *(int *)count = number;
  *(int *)size = end - 1 - number; /* without the bytes that mark them */
  return SUCCESS;
}

int WASI(args_get)(int to, int text) {
  int count;
  arguments((unsigned *)to, (unsigned char *)text, &count);
  return SUCCESS;
}
