/* State that several parts of the library share. */
#include "transputer.h"

extern char __heap_base;

int transputer_position;
char *transputer_break = &__heap_base;
