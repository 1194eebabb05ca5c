#include "assert.h"

__attribute__((weak)) void transputer_assert_failed(const char *condition, const char *file,
                                                    int line) {
  print_str(file);
  transputer_output(':');
  print_int(line);
  print_str(": assertion failed: ");
  print_str(condition);
  transputer_output('\n');
  __builtin_trap();
}
