/* Calls of WASI, and what they remember.
 *
 * They are compiled twice. Under the C library they are its imports, and the state is ordinary
 * variables. For a finished module (TRANSPUTER_LINKED, linked/wasi.c) they are exported by their
 * WASI names, and the state is globals of WebAssembly: they have no memory but the module's. */
#ifndef TRANSPUTER_SYSTEM_H
#define TRANSPUTER_SYSTEM_H

#include "transputer.h"

#ifdef TRANSPUTER_LINKED
#define WASI(name) __attribute__((export_name(#name))) wasi_##name
#define STATE static __attribute__((address_space(1)))
STATE int input_position; /* 0 until the arguments have been passed over */
STATE int closed_streams; /* a bit for each */
static void pass_arguments(void);

static int next_input(void) {
  if (!input_position) pass_arguments();
  return input_position;
}
static void set_next_input(int k) { input_position = k; }
static int is_closed(int stream) { return closed_streams >> stream & 1; }
static void close_stream(int stream) { closed_streams |= 1 << stream; }
#else
#define WASI(name) __imported_wasi_snapshot_preview1_##name
#define STATE static
static inline int next_input(void) { return transputer_position; }
static inline void set_next_input(int k) { transputer_position = k; }
static inline int is_closed(int stream) { return transputer_closed[stream]; }
static inline void close_stream(int stream) { transputer_closed[stream] = 1; }
#endif

/* Error numbers of WASI. */
enum { SUCCESS, BADF = 8, INVAL = 28, NOENT = 44, NOSYS = 52, NOTSUP = 58, SPIPE = 70 };

#endif
