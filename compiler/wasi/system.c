/* Exit, clocks, random numbers, an empty environment: the same in every run. */
#include "system.h"

void WASI(proc_exit)(int code) { transputer_exit(code); }

#ifndef TRANSPUTER_LINKED
/* The C library's entry has the arguments from arguments.c. */
int WASI(args_sizes_get)(int count, int size) {
  *(size_t *)count = *(size_t *)size = 0;
  return SUCCESS;
}
int WASI(args_get)(int to, int text) { return (void)to, (void)text, SUCCESS; }
#endif

int WASI(environ_sizes_get)(int count, int size) {
  *(size_t *)count = *(size_t *)size = 0;
  return SUCCESS;
}
int WASI(environ_get)(int to, int text) { return (void)to, (void)text, SUCCESS; }

/* Nanoseconds. A clock goes on by a millisecond whenever it is looked at, so that waiting for a
 * time to come ends; the calendar's begins with the year 2000. */
#define TICK 1000000
#define YEAR_2000 946684800000000000
STATE uint64_t now;

int WASI(clock_time_get)(int clock, int64_t precision, int to) {
  (void)precision;
  if ((unsigned)clock > 3) return INVAL;
  now += TICK;
  *(uint64_t *)to = clock ? now : now + YEAR_2000;
  return SUCCESS;
}

int WASI(clock_res_get)(int clock, int to) {
  if ((unsigned)clock > 3) return INVAL;
  *(uint64_t *)to = TICK;
  return SUCCESS;
}

/* xorshift32 from a fixed seed; its state is kept as the difference from that. */
#define SEED 2463534242u
STATE uint32_t random_state;

int WASI(random_get)(int to, int size) {
  uint32_t x = random_state ^ SEED;
  for (unsigned char *byte = (unsigned char *)to, *end = byte + size; byte != end; byte++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *byte = (unsigned char)x;
  }
  random_state = x ^ SEED;
  return SUCCESS;
}

int WASI(sched_yield)(void) { return SUCCESS; }
int WASI(proc_raise)(int signal) { return (void)signal, NOSYS; }

typedef struct {
  uint64_t user;
  uint8_t kind;
  _Alignas(8) uint32_t clock;
  uint64_t timeout, precision;
  uint16_t absolute;
} subscription_t;

typedef struct {
  uint64_t user;
  uint16_t error;
  uint8_t kind;
  uint64_t bytes;
  uint16_t flags;
} event_t;

_Static_assert(sizeof(subscription_t) == 48 && sizeof(event_t) == 32, "layouts of WASI");

/* Nothing ever has to be waited for: everything that is asked about has happened. */
int WASI(poll_oneoff)(int from, int to, int count, int happened) {
  const subscription_t *wanted = (const subscription_t *)from;
  event_t *event = (event_t *)to;
  if (count == 0) return INVAL;
  for (int i = 0; i < count; i++, wanted++, event++) {
    if (wanted->kind == 0 && !wanted->absolute) now += wanted->timeout;
    *event = (event_t){.user = wanted->user, .kind = wanted->kind};
  }
  *(size_t *)happened = (size_t)count;
  return SUCCESS;
}
