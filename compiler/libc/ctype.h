/* Character classes of ASCII. */
#ifndef TRANSPUTER_CTYPE_H
#define TRANSPUTER_CTYPE_H

#include "transputer.h"

TRANSPUTER_INLINE int isdigit(int c) { return (unsigned)c - '0' < 10; }
TRANSPUTER_INLINE int islower(int c) { return (unsigned)c - 'a' < 26; }
TRANSPUTER_INLINE int isupper(int c) { return (unsigned)c - 'A' < 26; }
TRANSPUTER_INLINE int isalpha(int c) { return ((unsigned)c | 32) - 'a' < 26; }
TRANSPUTER_INLINE int isalnum(int c) {
  return (unsigned)c - '0' < 10 || ((unsigned)c | 32) - 'a' < 26;
}
TRANSPUTER_INLINE int isxdigit(int c) {
  return (unsigned)c - '0' < 10 || ((unsigned)c | 32) - 'a' < 6;
}
TRANSPUTER_INLINE int isspace(int c) { return c == ' ' || (unsigned)c - '\t' < 5; }
TRANSPUTER_INLINE int isprint(int c) { return (unsigned)c - ' ' < 95; }
TRANSPUTER_INLINE int isgraph(int c) { return (unsigned)c - '!' < 94; }
TRANSPUTER_INLINE int iscntrl(int c) { return (unsigned)c < 32 || c == 127; }
TRANSPUTER_INLINE int ispunct(int c) {
  return (unsigned)c - '!' < 94 && !((unsigned)c - '0' < 10 || ((unsigned)c | 32) - 'a' < 26);
}
TRANSPUTER_INLINE int tolower(int c) { return (unsigned)c - 'A' < 26 ? c + 32 : c; }
TRANSPUTER_INLINE int toupper(int c) { return (unsigned)c - 'a' < 26 ? c - 32 : c; }

#endif
