#define TRANSPUTER_INLINE __attribute__((weak))
#include "ctype.h"
