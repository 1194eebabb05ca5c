/* Pretty-prints JSON from standard input, two spaces a level; says where it is wrong. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int next, line = 1, column = 0;

static void advance(void) {
  next = getchar();
  column++;
  if (next == '\n') line++, column = 0;
}

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fprintf(stderr, "\nline %d, column %d: ", line, column);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static void skip_space(void) {
  while (next == ' ' || next == '\t' || next == '\n' || next == '\r') advance();
}

static void expect(int byte) {
  if (next != byte) fail("expected '%c'", byte);
  advance();
}

static void indent(int depth) {
  printf("\n%*s", 2 * depth, "");
}

static void string(void) {
  expect('"');
  putchar('"');
  while (next != '"') {
    if (next == EOF || next < ' ') fail("a string does not end");
    if (next == '\\') {
      putchar(next);
      advance();
      if (next == EOF) continue;
    }
    putchar(next);
    advance();
  }
  putchar('"');
  advance();
}

static void digits(void) {
  if (!isdigit(next)) fail("expected a digit");
  for (; isdigit(next); advance()) putchar(next);
}

static void number(void) {
  if (next == '-') putchar(next), advance();
  digits();
  if (next == '.') putchar(next), advance(), digits();
  if (next == 'e' || next == 'E') {
    putchar(next);
    advance();
    if (next == '+' || next == '-') putchar(next), advance();
    digits();
  }
}

static void word(const char *name) {
  for (const char *letter = name; *letter; letter++) {
    if (next != *letter) fail("expected %s", name);
    advance();
  }
  fputs(name, stdout);
}

static void value(int depth);

static void list(int close, int depth) {
  int first = 1;
  putchar(next);
  advance();
  skip_space();
  for (; next != close; first = 0) {
    if (!first) {
      expect(',');
      putchar(',');
      skip_space();
    }
    indent(depth + 1);
    if (close == '}') {
      string();
      skip_space();
      expect(':');
      fputs(": ", stdout);
    }
    value(depth + 1);
  }
  if (!first) indent(depth);
  putchar(close);
  advance();
}

static void value(int depth) {
  if (depth > 100) fail("too deep");
  skip_space();
  switch (next) {
    case '{': list('}', depth); break;
    case '[': list(']', depth); break;
    case '"': string(); break;
    case 't': word("true"); break;
    case 'f': word("false"); break;
    case 'n': word("null"); break;
    default: number();
  }
  skip_space();
}

int main(void) {
  advance();
  value(0);
  if (next != EOF) fail("expected the end");
  putchar('\n');
  return 0;
}
