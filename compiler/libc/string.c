/* Whole words are moved, aligned or not: to the machine it is all the same. */
#include "string.h"

#define WEAK __attribute__((weak))

typedef unsigned char byte_t;
typedef unsigned __attribute__((may_alias, aligned(1))) word_t;

/* No `restrict`: memmove relies on the order. */
WEAK void *memcpy(void *to, const void *from, size_t size) {
  byte_t *t = to;
  const byte_t *f = from;
  for (; size >= 4; size -= 4, t += 4, f += 4) *(word_t *)t = *(const word_t *)f;
  for (; size; size--) *t++ = *f++;
  return to;
}

WEAK void *memmove(void *to, const void *from, size_t size) {
  byte_t *t = to;
  const byte_t *f = from;
  /* Not inside the source: forwards is safe, words too, as each is read before it is reached. */
  if ((unsigned)t - (unsigned)f >= size) return memcpy(to, from, size);
  t += size, f += size;
  for (; size >= 4; size -= 4) t -= 4, f -= 4, *(word_t *)t = *(const word_t *)f;
  for (; size; size--) *--t = *--f;
  return to;
}

WEAK void *memset(void *to, int byte, size_t size) {
  byte_t *t = to;
  unsigned word = (byte_t)byte * 0x01010101u;
  for (; size >= 4; size -= 4, t += 4) *(word_t *)t = word;
  for (; size; size--) *t++ = (byte_t)byte;
  return to;
}

WEAK int memcmp(const void *left, const void *right, size_t size) {
  const byte_t *l = left, *r = right;
  for (; size; size--, l++, r++) {
    if (*l != *r) return *l - *r;
  }
  return 0;
}

WEAK void *memchr(const void *block, int byte, size_t size) {
  const byte_t *b = block;
  for (; size; size--, b++) {
    if (*b == (byte_t)byte) return (void *)b;
  }
  return 0;
}

WEAK size_t strlen(const char *text) {
  const char *end = text;
  while (*end) end++;
  return (size_t)(end - text);
}

WEAK int strcmp(const char *left, const char *right) {
  const byte_t *l = (const byte_t *)left, *r = (const byte_t *)right;
  while (*l && *l == *r) l++, r++;
  return *l - *r;
}

WEAK int strncmp(const char *left, const char *right, size_t size) {
  const byte_t *l = (const byte_t *)left, *r = (const byte_t *)right;
  for (; size && *l && *l == *r; size--) l++, r++;
  return size ? *l - *r : 0;
}

WEAK char *strcpy(char *restrict to, const char *restrict from) {
  char *t = to;
  while ((*t++ = *from++)) {
  }
  return to;
}

WEAK char *strncpy(char *restrict to, const char *restrict from, size_t size) {
  char *t = to;
  for (; size && *from; size--) *t++ = *from++;
  for (; size; size--) *t++ = 0;
  return to;
}

WEAK char *strcat(char *restrict to, const char *restrict from) {
  char *t = to;
  while (*t) t++;
  while ((*t++ = *from++)) {
  }
  return to;
}

WEAK char *strchr(const char *text, int byte) {
  for (;; text++) {
    if (*text == (char)byte) return (char *)text;
    if (!*text) return 0;
  }
}

WEAK char *strrchr(const char *text, int byte) {
  const char *found = 0;
  for (;; text++) {
    if (*text == (char)byte) found = text;
    if (!*text) return (char *)found;
  }
}
