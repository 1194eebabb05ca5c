/* For a program without %m in its strings: what printf would call for it. */
#include <stdio.h>
#include <stdlib.h>

char *transputer_error_text(int error) {
  (void)error;
  fputs("%m in a format is linked only where a string of the program has it.\n", stderr);
  abort();
}
