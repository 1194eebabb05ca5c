/* Calls of WASI as the C library imports them. */
#ifndef TRANSPUTER_SYSTEM_H
#define TRANSPUTER_SYSTEM_H

#include "transputer.h"

/* The name of a call: `number WASI(name)(...)`. */
#define WASI(name) __imported_wasi_snapshot_preview1_##name

/* Error numbers of WASI. */
enum { SUCCESS, BADF = 8, INVAL = 28, NOENT = 44, NOSYS = 52, NOTSUP = 58, SPIPE = 70 };

#endif
