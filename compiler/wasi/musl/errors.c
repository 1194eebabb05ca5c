/* What printf prints for %m. */
#include <string.h>

char *transputer_error_text(int error) { return strerror(error); }
