/* The shortest program that prints. */
#include <stdio.h>

int main(void) {
  puts("Hello from inside a transformer!");
  return 0;
}
