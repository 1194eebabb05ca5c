/* f64 on its bits: IEEE 754 binary64, round to nearest, ties to even. */
#include "float64.h"

/* The halves of both operands, once and for all. */
#define HALVES \
  u32 a_hi = high(a), b_hi = high(b), a_lo = low(a), b_lo = low(b); \
  OPAQUE(a_hi); \
  OPAQUE(b_hi);

OPERATION("f64.add") u64 float64_add(u64 a, u64 b) {
  HALVES
  if (a_hi << 1 < b_hi << 1) { /* the greater exponent first */
    u32 hi = a_hi, lo = a_lo;
    a_hi = b_hi, a_lo = b_lo;
    b_hi = hi, b_lo = lo;
  }
  u32 sign = a_hi & SIGN64, differ = a_hi ^ b_hi;
  i32 e = (i32)(a_hi >> 20 & 2047), f = (i32)(b_hi >> 20 & 2047);
  u32 a_top = (a_hi & 0xFFFFF) | 0x100000, b_top = (b_hi & 0xFFFFF) | 0x100000;
  if (f == 0 || e == 2047) {
    OPAQUE(e); /* seldom */
    if (e == 2047) {
      u32 x = a_hi << 1, y = b_hi << 1;
      if ((x | (a_lo != 0)) > 2 * INF64 || (y | (b_lo != 0)) > 2 * INF64) return NAN64;
      return (i32)differ < 0 && x == y ? NAN64 : pair(a_hi, 0);
    }
    if ((b_hi << 1 | b_lo) == 0) { /* -0 only if both are */
      return pair((a_hi << 1 | a_lo) == 0 ? a_hi & b_hi : a_hi, a_lo);
    }
    b_top ^= 0x100000, f = 1; /* there is no bit before the point */
    if (e == 0) a_top ^= 0x100000, e = 1;
  }
  a_hi = a_top << 3 | a_lo >> 29, a_lo <<= 3;
  b_hi = b_top << 3 | b_lo >> 29, b_lo <<= 3;
  if (e != f) shift_right_sticky(&b_hi, &b_lo, (u32)(e - f));
  if ((i32)differ >= 0) {
    a_lo += b_lo;
    a_hi += b_hi + (a_lo < b_lo);
    if (a_hi >= 2 * ONE64) {
      a_lo = a_lo >> 1 | a_hi << 31 | (a_lo & 1);
      a_hi >>= 1;
      if (++e == 2047) return pair(sign | INF64, 0);
    }
    return pack64(sign, e, a_hi, a_lo);
  }
  a_hi -= b_hi + (a_lo < b_lo);
  a_lo -= b_lo;
  if ((i32)a_hi < 0) { /* the exponents were equal */
    OPAQUE(a_hi);
    a_lo = -a_lo, a_hi = ~a_hi + (a_lo == 0), sign ^= SIGN64;
  }
  if (a_hi < ONE64) {
    if ((a_hi | a_lo) == 0) return 0;
    i32 up;
    if (a_hi) {
      up = __builtin_clz(a_hi) - 8;
    } else {
      OPAQUE(a_lo);
      up = 24 + __builtin_clz(a_lo);
    }
    if (up >= e) up = e - 1;
    e -= up;
    if (up >= 32) {
      OPAQUE(up);
      a_hi = a_lo, a_lo = 0;
    }
    a_hi = a_hi << (up & 31) | a_lo >> 1 >> (~up & 31);
    a_lo <<= up & 31;
  }
  return pack64(sign, e, a_hi, a_lo);
}

OPERATION("f64.sub") u64 float64_sub(u64 a, u64 b) { return float64_add(a, b ^ pair(SIGN64, 0)); }

/* Normalises the mantissa of a subnormal number, given without the bit before the point, to 53
   bits; returns the exponent. */
INLINE i32 normalise64(u32 *hi, u32 *lo) {
  if (*hi == 0) {
    u32 up = (u32)__builtin_clz(*lo), whole = *lo << up;
    *hi = whole >> 11, *lo = whole << 21;
    return -20 - (i32)up;
  }
  OPAQUE(*hi);
  u32 up = (u32)__builtin_clz(*hi) - 11;
  *hi = *hi << up | *lo >> (32 - up), *lo <<= up;
  return 1 - (i32)up;
}

/* Sign of a product or quotient, exponents, and normalised mantissas. Returns from the function if
   an operand is zero, infinite or a NaN; ``infinite`` and ``zero`` tell whether something makes the
   result so. */
#define UNPACK64(infinite, zero) \
  u32 sign = (a_hi ^ b_hi) & SIGN64; \
  i32 e = (i32)(a_hi >> 20 & 2047), f = (i32)(b_hi >> 20 & 2047); \
  a_hi = (a_hi & 0xFFFFF) | 0x100000, b_hi = (b_hi & 0xFFFFF) | 0x100000; \
  if ((u32)(e - 1) >= 2046 || (u32)(f - 1) >= 2046) { \
    OPAQUE(e); /* seldom */ \
    a_hi ^= 0x100000, b_hi ^= 0x100000; \
    u32 a_rest = a_hi | a_lo, b_rest = b_hi | b_lo; \
    if ((e == 2047 && a_rest) || (f == 2047 && b_rest)) return NAN64; \
    u32 a_zero = e == 0 && !a_rest, b_zero = f == 0 && !b_rest; \
    if (infinite) return (zero) ? NAN64 : pair(sign | INF64, 0); \
    if (zero) return pair(sign, 0); \
    if (e) a_hi |= 0x100000; else e = normalise64(&a_hi, &a_lo); \
    if (f) b_hi |= 0x100000; else f = normalise64(&b_hi, &b_lo); \
  }

/* The mantissas are multiplied as four digits of 14 bits each: a column of products of digits
   fits a word, so nothing is carried before the end. */
OPERATION("f64.mul") u64 float64_mul(u64 a, u64 b) {
  HALVES
  UNPACK64(e == 2047 || f == 2047, a_zero || b_zero)
  e += f - 1023;
  u32 hi, lo;
  if ((a_lo | b_lo) == 0) { /* small numbers: one product of 21 by 21 bits, at 2^40 */
    hi = high_product(a_hi << 11, b_hi << 4), lo = (a_hi << 11) * (b_hi << 4);
  } else {
    u32 a0 = a_lo & 0x3FFF, a1 = a_lo >> 14 & 0x3FFF, a3 = a_hi >> 10;
    u32 b0 = b_lo & 0x3FFF, b1 = b_lo >> 14 & 0x3FFF, b3 = b_hi >> 10;
    u32 a2 = (a_hi << 4 | a_lo >> 28) & 0x3FFF, b2 = (b_hi << 4 | b_lo >> 28) & 0x3FFF;
    u32 c0 = a0 * b0;
    u32 c1 = a0 * b1 + a1 * b0 + (c0 >> 14);
    u32 c2 = a0 * b2 + a1 * b1 + a2 * b0 + (c1 >> 14);
    u32 c3 = a0 * b3 + a1 * b2 + a2 * b1 + a3 * b0 + (c2 >> 14);
    u32 c4 = a1 * b3 + a2 * b2 + a3 * b1 + (c3 >> 14);
    u32 c5 = a2 * b3 + a3 * b2 + (c4 >> 14);
    u32 c6 = a3 * b3 + (c5 >> 14); /* product = c6 * 2^84 + ..., in [2^104, 2^106) */
    /* bits 49 and up: seven of c3, fourteen of c4 and of c5, all of c6 */
    u32 sticky = ((c0 | c1 | c2) & 0x3FFF) | (c3 & 0x7F);
    lo = (c3 >> 7 & 0x7F) | (c4 & 0x3FFF) << 7 | c5 << 21 | (sticky != 0);
    hi = (c5 & 0x3FFF) >> 11 | c6 << 3;
  }
  if (hi >= 2 * ONE64) lo = lo >> 1 | hi << 31 | (lo & 1), hi >>= 1, e++;
  return pack_any64(sign, e, hi, lo);
}

/* Long division, a bit and four digits of 14 bits: the next digit of the quotient, and the
   remainder it leaves. A digit is estimated from the top 32 and 18 bits: it is right or one too
   great. */
#define QUOTIENT_DIGIT(q) \
  u32 q = (a_hi << 11 | a_lo >> 21) / estimator; \
  { \
    u32 product_lo = q * b_lo, product_hi = q * b_hi + ((q * b1 + (q * b0 >> 16)) >> 16); \
    a_hi = a_hi << 14 | a_lo >> 18, a_lo <<= 14; \
    a_hi -= product_hi + (a_lo < product_lo); \
    a_lo -= product_lo; \
    if ((i32)a_hi < 0) { \
      q--; \
      a_lo += b_lo; \
      a_hi += b_hi + (a_lo < b_lo); \
    } \
  }

OPERATION("f64.div") u64 float64_div(u64 a, u64 b) {
  HALVES
  UNPACK64(e == 2047 || b_zero, f == 2047 || a_zero)
  e -= f - 1023;
  if (a_hi < b_hi || (a_hi == b_hi && a_lo < b_lo)) {
    a_hi = a_hi << 1 | a_lo >> 31, a_lo <<= 1, e--;
  }
  u32 borrow = a_lo < b_lo;
  a_lo -= b_lo, a_hi -= b_hi + borrow;
  u32 b0 = b_lo & 0xFFFF, b1 = b_lo >> 16, estimator = b_hi >> 3;
  u32 upper = 0, lower = 0; /* the quotient without its first bit */
#pragma clang loop unroll(disable)
  for (int half = 0; half < 2; half++) {
    QUOTIENT_DIGIT(first)
    QUOTIENT_DIGIT(second)
    upper = lower;
    lower = first << 14 | second;
  }
  u32 sticky = (a_hi | a_lo) != 0;
  return pack_any64(sign, e, upper >> 5 | ONE64, upper << 27 | lower >> 1 | (lower & 1) | sticky);
}

/* One step of Zimmermann's square root: append ``n`` bits to the root, given the number's next 2n
   bits are zero. ``estimate``: the digit, up to two too great. */
#define EXTEND_ROOT(n, estimate) \
  { \
    u32 digit = (estimate); \
    u64 product = small_product(high(root) << 1 | low(root) >> 31, low(root) << 1, digit); \
    rest = (((rest << n) - product) << n) - digit * digit; \
    root = (root << n) + digit; \
    while ((i64)rest < 0) { \
      OPAQUE(digit); \
      root--; \
      rest += (root << 1) + 1; \
    } \
  }

/* P. Zimmermann, "Karatsuba Square Root" (1999), with digits of 16, 15, 12 and 11 bits: the root of
   the bits so far and the remainder, at most twice the root, give the next bits by a division. */
OPERATION("f64.sqrt") u64 float64_sqrt(u64 a) {
  u32 hi = high(a), lo = low(a);
  if (((hi & ~SIGN64) | lo) == 0) return a;
  if (hi >= INF64) return hi == INF64 && lo == 0 ? a : NAN64;
  i32 e = (i32)(hi >> 20);
  hi &= 0xFFFFF;
  if (e) hi |= 0x100000; else e = normalise64(&hi, &lo);
  if (!(e & 1)) hi = hi << 1 | lo >> 31, lo <<= 1;
  u32 upper = hi << 10 | lo >> 22; /* in [2^30, 2^32); 22 bits and zeros follow */
  u32 first = word_root(upper);
  u32 numerator = (upper - first * first) << 15 | (lo >> 7 & 0x7FFF);
  u32 digit = numerator / (first << 1);
  u32 left = (numerator - digit * (first << 1)) << 15 | (lo & 0x7F) << 8;
  u32 root_31 = (first << 15) + digit;
  u32 rest_32 = left - digit * digit;
  if (left < digit * digit) {
    OPAQUE(rest_32);
    root_31--, rest_32 += 2 * root_31 + 1;
  }
  u64 root = root_31, rest = rest_32;
  EXTEND_ROOT(12, rest_32 / (root_31 >> 11))
  EXTEND_ROOT(11, (u32)(rest >> 12) / (u32)(root >> 22))
  return pack64(0, (e + 1023) >> 1, high(root) << 2 | low(root) >> 30,
                low(root) << 2 | (rest != 0));
}

/* --- comparisons ----------------------------------------------------------------------------- */

/* Returns ``result`` from the function if an operand is a NaN. */
#define IF_UNORDERED(result) \
  if ((a_hi & ~SIGN64) >= INF64) { \
    OPAQUE(a_hi); /* seldom: the rest is not to be computed before */ \
    if (((a_hi & ~SIGN64) | (a_lo != 0)) > INF64) return result; \
  } \
  if ((b_hi & ~SIGN64) >= INF64) { \
    OPAQUE(b_hi); \
    if (((b_hi & ~SIGN64) | (b_lo != 0)) > INF64) return result; \
  }

/* Whether a is below b, neither of them a NaN; -0 is below +0 if ``total`` is 1. */
INLINE u32 below64(u32 a_hi, u32 a_lo, u32 b_hi, u32 b_lo, u32 total) {
  if ((i32)(a_hi ^ b_hi) < 0) {
    OPAQUE(a_hi);
    return (i32)a_hi < 0 && (total || ((a_hi | b_hi) << 1 | a_lo | b_lo) != 0);
  }
  if (a_hi != b_hi) {
    OPAQUE(a_hi);
    return (a_hi < b_hi) ^ a_hi >> 31;
  }
  OPAQUE(a_lo);
  return (i32)a_hi < 0 ? a_lo > b_lo : a_lo < b_lo;
}

OPERATION("f64.eq") u32 float64_eq(u64 a, u64 b) {
  HALVES
  if (a_hi == b_hi && a_lo == b_lo) return ((a_hi & ~SIGN64) | (a_lo != 0)) <= INF64;
  OPAQUE(a_hi);
  return ((a_hi | b_hi) << 1 | a_lo | b_lo) == 0;
}

OPERATION("f64.ne") u32 float64_ne(u64 a, u64 b) {
  HALVES
  if (a_hi == b_hi && a_lo == b_lo) return ((a_hi & ~SIGN64) | (a_lo != 0)) > INF64;
  OPAQUE(a_hi);
  return ((a_hi | b_hi) << 1 | a_lo | b_lo) != 0;
}

OPERATION("f64.lt") u32 float64_lt(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(0)
  return below64(a_hi, a_lo, b_hi, b_lo, 0);
}

OPERATION("f64.gt") u32 float64_gt(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(0)
  return below64(b_hi, b_lo, a_hi, a_lo, 0);
}

OPERATION("f64.le") u32 float64_le(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(0)
  return !below64(b_hi, b_lo, a_hi, a_lo, 0);
}

OPERATION("f64.ge") u32 float64_ge(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(0)
  return !below64(a_hi, a_lo, b_hi, b_lo, 0);
}

OPERATION("f64.min") u64 float64_min(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(NAN64)
  return below64(a_hi, a_lo, b_hi, b_lo, 1) ? a : b;
}

OPERATION("f64.max") u64 float64_max(u64 a, u64 b) {
  HALVES
  IF_UNORDERED(NAN64)
  return below64(a_hi, a_lo, b_hi, b_lo, 1) ? b : a;
}

/* --- rounding to an integer ------------------------------------------------------------------ */

/* The number with the bits of its fraction changed to zero, after ``up`` (0 or all ones) of them
   was added; for magnitudes in [1, 2^52). */
INLINE u64 cut64(u64 a, u32 up) {
  u32 n = (high(a) >> 20 & 2047) - 1023; /* bits before the point, less one */
  u32 hi = high(a), lo = low(a);
  if (n < 20) {
    u32 mask = 0xFFFFF >> n;
    u32 sum = lo + up;
    return pair((hi + (mask & up) + (sum < lo)) & ~mask, 0);
  }
  u32 mask = 0xFFFFFFFF >> (n - 20), sum = lo + (mask & up);
  return pair(hi + (sum < lo), sum & ~mask);
}

#define ONE_HIGH 0x3FF00000u
#define WHOLE64(a) \
  if (magnitude64(a) >= 0x43300000) return is_nan64(a) ? NAN64 : a; \
  if ((magnitude64(a) | low(a)) == 0) return a;

OPERATION("f64.trunc") u64 float64_trunc(u64 a) {
  WHOLE64(a)
  if (magnitude64(a) < ONE_HIGH) return pair(high(a) & SIGN64, 0);
  return cut64(a, 0);
}

OPERATION("f64.floor") u64 float64_floor(u64 a) {
  WHOLE64(a)
  if (magnitude64(a) < ONE_HIGH) return (i32)high(a) < 0 ? pair(SIGN64 | ONE_HIGH, 0) : 0;
  return cut64(a, (u32)((i32)high(a) >> 31));
}

OPERATION("f64.ceil") u64 float64_ceil(u64 a) {
  WHOLE64(a)
  if (magnitude64(a) < ONE_HIGH) return pair((i32)high(a) < 0 ? SIGN64 : ONE_HIGH, 0);
  return cut64(a, ~(u32)((i32)high(a) >> 31));
}

OPERATION("f64.nearest") u64 float64_nearest(u64 a) {
  WHOLE64(a)
  u32 x = magnitude64(a), hi = high(a), lo = low(a), sign = hi & SIGN64;
  if (x < ONE_HIGH) {
    u32 above_half = x > 0x3FE00000 || (x == 0x3FE00000 && lo);
    return pair(above_half ? sign | ONE_HIGH : sign, 0);
  }
  u32 n = (x >> 20) - 1023;
  if (n < 20) { /* the point lies in the high word, or right below it */
    u32 mask = 0xFFFFF >> n, odd = hi & (mask + 1);
    /* just below a half, and the bit above the fraction: the low words carry unless both are 0 */
    return pair((hi + (mask >> 1) + ((lo | odd) != 0)) & ~mask, 0);
  }
  u32 mask = 0xFFFFFFFF >> (n - 20);
  u32 odd = n == 20 ? hi & 1 : (lo & (mask + 1)) != 0;
  u32 sum = lo + (mask >> 1) + odd;
  return pair(hi + (sum < lo), sum & ~mask);
}
