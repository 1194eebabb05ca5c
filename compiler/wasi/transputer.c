#include "transputer.h"

#include <stdio.h>

static void print_number(unsigned value, unsigned base) {
  char digits[10], *first = digits + sizeof digits;
  do {
    unsigned rest = value / base, digit = value - rest * base;
    *--first = (char)(digit < 10 ? '0' + digit : 'a' - 10 + digit);
    value = rest;
  } while (value);
  fwrite(first, 1, (size_t)(digits + sizeof digits - first), stdout);
}

void print_str(const char *text) { fputs(text, stdout); }
void print_uint(unsigned value) { print_number(value, 10); }
void print_hex(unsigned value) { print_number(value, 16); }

void print_int(int value) {
  if (value < 0) putchar('-');
  print_number(value < 0 ? -(unsigned)value : (unsigned)value, 10);
}

int read_int(int *value) {
  int byte = getchar();
  while (byte >= 0 && byte <= ' ') byte = getchar();
  if (byte < 0) return -1;
  int negative = byte == '-';
  if (negative || byte == '+') byte = getchar();
  unsigned number = 0;
  int found = 0;
  for (; (unsigned)byte - '0' <= 9; byte = getchar()) {
    number = number * 10 + ((unsigned)byte - '0');
    found = 1;
  }
  ungetc(byte, stdin);
  if (found) *value = (int)(negative ? -number : number);
  return found;
}
