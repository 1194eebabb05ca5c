/* assert prints where and what failed, then traps (unreachable). */
#include "transputer.h"

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \
  ((condition) ? (void)0 : transputer_assert_failed(#condition, __FILE__, __LINE__))
#endif

#ifndef TRANSPUTER_ASSERT_H
#define TRANSPUTER_ASSERT_H
__attribute__((noreturn)) void transputer_assert_failed(const char *condition, const char *file,
                                                        int line);
#if !defined(__cplusplus) && __STDC_VERSION__ < 202311L
#define static_assert _Static_assert
#endif
#endif
