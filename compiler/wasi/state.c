#include "transputer.h"

extern char __heap_base;

int transputer_position;
/* malloc keeps the size of a block in the word before it. */
char *transputer_break = &__heap_base + 16;
unsigned char transputer_closed[3];
