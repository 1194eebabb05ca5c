/* The arguments of `int main(int, char **)`, from the head of the input. Each is a byte 1, its bytes
 * and a NUL; a byte 0 ends the list (Program.input_bytes). They are copied to the start of the
 * heap, which ends with the memory: a store beyond it traps. */
#include "transputer.h"

int __main_argc_argv(int argc, char **argv);

__attribute__((export_name("transputer_wants_args"))) int transputer_wants_args(void) { return 1; }

int __main_void(void) {
  char *text = transputer_break;
  int k = transputer_position, argc = 0;
  while (transputer_input(k++) == 1) {
    argc++;
    while ((*text++ = (char)transputer_input(k++))) {
    }
  }
  transputer_position = k;
  char **argv = (char **)(((uintptr_t)text + 3) & ~3u);
  text = transputer_break;
  for (int i = 0; i < argc; i++) {
    argv[i] = text;
    while (*text++) {
    }
  }
  argv[argc] = 0;
  transputer_break = (char *)(((uintptr_t)(argv + argc + 1) + 31) & ~15u);
  return __main_argc_argv(argc, argv);
}
