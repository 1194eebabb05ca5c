/* What the runtime's files share. Integers only: no memory, no globals, no floating point. Every
   64-bit value is meant as its two halves, which cost nothing to take apart and to join. */
#ifndef RUNTIME_H
#define RUNTIME_H

typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#define OPERATION(name) __attribute__((export_name(name)))
#define INLINE static inline __attribute__((always_inline))
#define TRAP(reason) __attribute__((import_module("trap"), import_name(reason))) _Noreturn

/* The compiler knows nothing about the value any more: it must not see the pattern of the very
   instruction that a function implements, nor compute in advance what is seldom needed. */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))

TRAP("integer overflow") void trap_integer_overflow(void);
TRAP("invalid conversion to integer") void trap_invalid_conversion(void);

INLINE u32 low(u64 x) { return (u32)x; }
INLINE u32 high(u64 x) { return (u32)(x >> 32); }
INLINE u64 pair(u32 hi, u32 lo) { return (u64)hi << 32 | lo; }

/* Shift (hi, lo) to the right by n, at least 1; the lowest bit of the result is set if a bit that
   was not zero is lost. */
INLINE void shift_right_sticky(u32 *hi, u32 *lo, u32 n) {
  u32 upper = *hi, lower = *lo;
  if (n < 32) {
    *lo = lower >> n | upper << (32 - n) | (lower << (32 - n) != 0);
    *hi = upper >> n;
    return;
  }
  OPAQUE(upper);
  *hi = 0;
  if (n >= 64) {
    *lo = (upper | lower) != 0;
    return;
  }
  *lo = upper >> (n & 31) | ((upper << 1 << (~n & 31) | lower) != 0);
}

/* High half of the product of two words. */
INLINE u32 high_product(u32 a, u32 b) {
  u32 a0 = a & 0xFFFF, a1 = a >> 16, b0 = b & 0xFFFF, b1 = b >> 16;
  u32 middle = a1 * b0 + (a0 * b0 >> 16);
  OPAQUE(middle);
  u32 other = a0 * b1 + (middle & 0xFFFF);
  return a1 * b1 + (middle >> 16) + (other >> 16);
}

/* Product of (hi, lo) and a factor below 2^16. */
INLINE u64 small_product(u32 hi, u32 lo, u32 factor) {
  u32 carry = (factor * (lo >> 16) + (factor * (lo & 0xFFFF) >> 16)) >> 16;
  OPAQUE(carry);
  return pair(factor * hi + carry, factor * lo);
}

/* Square root of a number in [2^30, 2^32), rounded down. Two steps of Newton's iteration from
   x/3 + 17/24, which is off by less than 1/24 where x is in [1, 4), leave an error below 2^-21:
   the result is right or, because iteration comes from above, one too great. */
INLINE u32 word_root(u32 x) {
  u32 root = ((x >> 16) * 43691 >> 16) + 23211;
  root = (root + x / root) >> 1;
  root = (root + x / root) >> 1;
  return root - (root * root > x || root > 0xFFFF);
}

#endif
