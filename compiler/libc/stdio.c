/* Output and input. Numbers are printed without a division: see tenth(). */
#define TRANSPUTER_INLINE __attribute__((weak))
#include "stdio.h"

#include <stdarg.h>

#define WEAK __attribute__((weak))
#define DIGITS 10 /* of 4294967295 */

static char digits[DIGITS];

/* n / 10 by multiplication: exact up to 43698 with one product, above it with shifts and one
 * correction (Hacker's Delight, 10-9). */
static unsigned tenth(unsigned n) {
  if (n <= 43698) return n * 52429u >> 19;
  unsigned q = (n >> 1) + (n >> 2);
  q += q >> 4;
  q += q >> 8;
  q += q >> 16;
  q >>= 3;
  return q + (n - q * 10 > 9);
}

/* Writes the digits of n so that they end at `end`; returns the first. */
static char *decimal(unsigned n, char *end) {
  while (n > 9) {
    unsigned q = tenth(n);
    *--end = (char)('0' + (n - q * 10));
    n = q;
  }
  *--end = (char)('0' + n);
  return end;
}

static char *hexadecimal(unsigned n, char *end, unsigned letters) {
  do {
    unsigned digit = n & 15;
    *--end = (char)(digit + (digit < 10 ? '0' : letters));
    n >>= 4;
  } while (n);
  return end;
}

/* Unsigned: sign extension costs four instructions a byte, and output takes the low byte. */
static void emit(const char *from, const char *end) {
  while (from != end) transputer_output((unsigned char)*from++);
}

/* The optimiser may not look through this, and leaves the loop below as it is written. */
#define OPAQUE(variable) __asm__("" : "+r"(variable))

static void emit_text(const char *text) {
  unsigned byte = (unsigned char)*text;
  while (byte) {
    transputer_output((int)byte);
    text++;
    OPAQUE(text);
    byte = (unsigned char)*text;
    OPAQUE(byte);
  }
}

WEAK void print_uint(unsigned value) { emit(decimal(value, digits + DIGITS), digits + DIGITS); }

WEAK void print_int(int value) {
  unsigned magnitude = (unsigned)value;
  if (value < 0) {
    transputer_output('-');
    magnitude = -magnitude;
  }
  emit(decimal(magnitude, digits + DIGITS), digits + DIGITS);
}

WEAK void print_hex(unsigned value) {
  emit(hexadecimal(value, digits + DIGITS, 'a' - 10), digits + DIGITS);
}

WEAK void print_str(const char *text) { emit_text(text); }

WEAK int puts(const char *text) {
  emit_text(text);
  transputer_output('\n');
  return 0;
}

WEAK int read_int(int *value) {
  int k = transputer_position, byte, negative = 0;
  while ((unsigned)(byte = transputer_input(k)) <= ' ') k++;
  transputer_position = k;
  if (byte < 0) return -1;
  unsigned sign = (unsigned)byte - '+'; /* 0 for a plus, 2 for a minus */
  if (!(sign & ~2u)) {
    negative = sign != 0;
    byte = transputer_input(++k);
  }
  unsigned digit = (unsigned)byte - '0', number = 0;
  if (digit > 9) return 0;
  do {
    number = number * 10 + digit;
    digit = (unsigned)transputer_input(++k) - '0';
  } while (digit <= 9);
  transputer_position = k;
  *value = (int)(negative ? -number : number);
  return 1;
}

static int is_space(unsigned byte) { return byte == ' ' || byte - '\t' < 5; }

static int next_byte(void) { return transputer_input(transputer_position); }

static void skip_space(void) {
  while (is_space((unsigned)next_byte())) transputer_position++;
}

/* Reads at most `width` characters of a number; returns whether there is a digit. */
static int scan_number(unsigned base, unsigned width, unsigned *value) {
  int byte = next_byte(), negative = byte == '-', found = 0;
  if (negative || byte == '+') transputer_position++, width--;
  for (*value = 0; width; width--, found = 1, transputer_position++) {
    unsigned digit = (unsigned)next_byte() - '0';
    if (digit > 9) digit = ((digit + '0') | 32) - 'a' < 6 ? ((digit + '0') | 32) - 'a' + 10 : 99;
    if (digit >= base) break;
    *value = *value * base + digit;
  }
  if (negative) *value = -*value;
  return found;
}

/* Copies at most `width` characters, for %s those that are no white space; returns their number. */
static unsigned scan_text(int text, unsigned width, char *to) {
  unsigned count = 0;
  for (int byte; count < width && (byte = next_byte()) >= 0; count++, transputer_position++) {
    if (text && is_space((unsigned)byte)) break;
    if (to) *to++ = (char)byte;
  }
  if (to && text) *to = 0;
  return count;
}

WEAK int scanf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int stored = 0;
  for (char c; (c = *format++);) {
    if (is_space((unsigned char)c)) {
      skip_space();
      continue;
    }
    int stores = 1;
    unsigned width = 0;
    if (c == '%') {
      if (*format == '*') stores = 0, format++;
      for (; (unsigned)*format - '0' < 10; format++) width = width * 10 + (unsigned)(*format - '0');
      if (*format == 'l' || *format == 'z' || *format == 't') format++;
      c = *format++;
      if (c != 'c') skip_space();
      if (c != '%' && next_byte() < 0) {
        if (!stored) stored = EOF;
        break;
      }
      if (c == 'd' || c == 'u' || c == 'x') {
        unsigned value;
        if (!scan_number(c == 'x' ? 16 : 10, width ? width : -1u, &value)) break;
        if (stores) *va_arg(arguments, unsigned *) = value;
      } else if (c == 's' || c == 'c') {
        char *to = stores ? va_arg(arguments, char *) : 0;
        if (!width) width = c == 'c' ? 1 : -1u;
        if (scan_text(c == 's', width, to) < (c == 's' ? 1 : width)) break;
      } else if (c != '%') {
        __builtin_trap();
      }
      if (c != '%') {
        stored += stores;
        continue;
      }
    }
    int byte = next_byte();
    if (byte != (unsigned char)c) {
      if (byte < 0 && !stored) stored = EOF;
      break;
    }
    transputer_position++;
  }
  va_end(arguments);
  return stored;
}

static int pad(int count, char filler) {
  for (int i = 0; i < count; i++) transputer_output(filler);
  return count > 0 ? count : 0;
}

WEAK int printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int written = 0;
  for (char c; (c = *format++);) {
    if (c != '%') {
      transputer_output(c);
      written++;
      continue;
    }
    int left = 0, zero = 0, width = 0, precision = -1;
    char sign = 0;
    for (;; format++) {
      if (*format == '-') left = 1;
      else if (*format == '0') zero = 1;
      else if (*format == '+') sign = '+';
      else if (*format != ' ') break;
      else if (!sign) sign = ' ';
    }
    if (*format == '*') {
      format++;
      width = va_arg(arguments, int);
      if (width < 0) left = 1, width = -width;
    }
    for (; (unsigned)*format - '0' < 10; format++) width = width * 10 + (*format - '0');
    if (*format == '.') {
      precision = 0;
      if (*++format == '*') {
        format++;
        precision = va_arg(arguments, int);
      }
      for (; (unsigned)*format - '0' < 10; format++) precision = precision * 10 + (*format - '0');
    }
    if (*format == 'h' || *format == 'l') {
      if (format[1] == *format) {
        if (*format == 'l') __builtin_trap(); /* long long */
        format++;
      }
      format++;
    } else if (*format == 'z' || *format == 't') {
      format++;
    }

    char *end = digits + DIGITS, *from = end;
    c = *format++;
    if (c == 's') {
      from = va_arg(arguments, char *);
      for (end = from; precision-- && *end; end++) {
      }
      sign = 0, zero = 0;
    } else if (c == 'c') {
      *--from = (char)va_arg(arguments, int);
      sign = 0, zero = 0;
    } else if (c == '%') {
      *--from = '%';
      sign = 0, zero = 0;
    } else {
      if (precision >= 0) __builtin_trap();
      unsigned value = va_arg(arguments, unsigned);
      if (c == 'd' || c == 'i') {
        if ((int)value < 0) sign = '-', value = -value;
        from = decimal(value, end);
      } else {
        sign = 0;
        if (c == 'u') from = decimal(value, end);
        else if (c == 'x' || c == 'p') from = hexadecimal(value, end, 'a' - 10);
        else if (c == 'X') from = hexadecimal(value, end, 'A' - 10);
        else __builtin_trap();
      }
    }

    int size = (int)(end - from) + (sign != 0), gap = width - size;
    written += size;
    if (!left && !zero) written += pad(gap, ' ');
    if (sign) transputer_output(sign);
    if (!left && zero) written += pad(gap, '0');
    emit(from, end);
    if (left) written += pad(gap, ' ');
  }
  va_end(arguments);
  return written;
}
