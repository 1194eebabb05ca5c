/* Base64 (RFC 4648) of standard input, in lines of 76 characters; `-d` goes back. */
#include <stdio.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(void) {
  unsigned char in[3];
  size_t size;
  int column = 0;
  while ((size = fread(in, 1, 3, stdin)) > 0) {
    unsigned group = (unsigned)in[0] << 16;
    if (size > 1) group |= (unsigned)in[1] << 8;
    if (size > 2) group |= in[2];
    for (size_t i = 0; i < 4; i++) {
      putchar(i <= size ? alphabet[group >> (18 - 6 * i) & 63] : '=');
    }
    column += 4;
    if (column == 76) putchar('\n'), column = 0;
  }
  if (column) putchar('\n');
}

static int decode(void) {
  unsigned group = 0;
  int count = 0, padding = 0;
  for (int byte; (byte = getchar()) != EOF;) {
    if (byte == '\n' || byte == '\r') continue;
    const char *found = byte ? strchr(alphabet, byte) : NULL;
    if (byte == '=' && count >= 2 && count + padding < 4) {
      padding++;
    } else if (found && !padding) {
      group = group << 6 | (unsigned)(found - alphabet);
      count++;
    } else {
      fprintf(stderr, "not base64: character %d\n", byte);
      return 1;
    }
    if (count + padding < 4) continue;
    group <<= 6 * padding;
    for (int i = 0; i < 3 - padding; i++) putchar((int)(group >> (16 - 8 * i) & 255));
    if (!padding) group = 0, count = 0;
  }
  if (count && count + padding < 4) {
    fputs("not base64: it ends too early\n", stderr);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "-d") == 0) return decode();
  encode();
  return 0;
}
