#include "assert.h"

static void say(const char *text) {
  while (*text) transputer_error(*text++);
}

__attribute__((weak)) void transputer_assert_failed(const char *condition, const char *file,
                                                    int line) {
  char digits[11], *first = digits + sizeof digits - 1;
  *first = 0;
  do {
    *--first = (char)('0' + line % 10);
    line /= 10;
  } while (line);
  say(file);
  say(":");
  say(first);
  say(": assertion failed: ");
  say(condition);
  say("\n");
  __builtin_trap();
}
