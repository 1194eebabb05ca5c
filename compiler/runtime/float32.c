/* f32 on its bits: IEEE 754 binary32, round to nearest, ties to even. */
#include "float32.h"

OPERATION("f32.add") u32 float32_add(u32 a, u32 b) {
  if (magnitude32(b) > magnitude32(a)) {
    u32 other = a;
    a = b, b = other;
  }
  u32 x = magnitude32(a), y = magnitude32(b), sign = a & SIGN32, differ = (a ^ b) & SIGN32;
  if (x >= INF32) return x > INF32 || (y == INF32 && differ) ? NAN32 : a;
  i32 e = (i32)(x >> 23), f = (i32)(y >> 23);
  u32 m = (x & 0x7FFFFF) | 0x800000, n = (y & 0x7FFFFF) | 0x800000;
  if (e == 0) {
    OPAQUE(m); /* seldom */
    m ^= 0x800000, e = 1;
  }
  if (f == 0) {
    OPAQUE(n);
    n ^= 0x800000, f = 1;
  }
  m <<= 3, n <<= 3;
  if (e != f) n = shift32(n, (u32)(e - f));
  if (!differ) {
    m += n;
    if (m >= 2 * ONE32) {
      m = m >> 1 | (m & 1);
      if (++e == 255) return sign | INF32;
    }
  } else {
    m -= n;
    if (m == 0) return 0;
    if (m < ONE32) {
      i32 up = (i32)__builtin_clz(m) - 5;
      if (up >= e) up = e - 1;
      m <<= up, e -= up;
    }
  }
  return pack32(sign, e, m);
}

OPERATION("f32.sub") u32 float32_sub(u32 a, u32 b) { return float32_add(a, b ^ SIGN32); }

/* Exponent of a finite number that is not zero; the mantissa is normalised to 24 bits. */
INLINE i32 unpack32(u32 *m) {
  i32 e = (i32)(*m >> 23);
  u32 mantissa = *m & 0x7FFFFF;
  if (e) {
    *m = mantissa | 0x800000;
    return e;
  }
  u32 up = (u32)__builtin_clz(mantissa) - 8;
  *m = mantissa << up;
  return 1 - (i32)up;
}

OPERATION("f32.mul") u32 float32_mul(u32 a, u32 b) {
  u32 m = magnitude32(a), n = magnitude32(b), sign = (a ^ b) & SIGN32;
  if (m >= INF32 || n >= INF32) return m > INF32 || n > INF32 || !m || !n ? NAN32 : sign | INF32;
  if (!m || !n) return sign;
  i32 e = unpack32(&m) + unpack32(&n) - 126;
  m <<= 8, n <<= 4;
  u32 product = high_product(m, n) | (m * n != 0);
  if (product < 2 * ONE32)
    e--;
  else
    product = product >> 1 | (product & 1);
  return pack_any32(sign, e, product);
}

OPERATION("f32.div") u32 float32_div(u32 a, u32 b) {
  u32 m = magnitude32(a), n = magnitude32(b), sign = (a ^ b) & SIGN32;
  if (m >= INF32 || n >= INF32) {
    if (m > INF32 || n > INF32 || m == n) return NAN32;
    return m == INF32 ? sign | INF32 : sign;
  }
  if (!m || !n) return m == n ? NAN32 : n ? sign : sign | INF32;
  i32 e = unpack32(&m) - unpack32(&n) + 127;
  if (m < n) m <<= 1, e--;
  u32 quotient = 1; /* three digits of 8 bits follow */
  m -= n;
#pragma clang loop unroll(disable)
  for (int digit = 0; digit < 3; digit++) {
    u32 q = (m << 8) / n;
    m = (m << 8) - q * n;
    quotient = quotient << 8 | q;
  }
  return pack_any32(sign, e, quotient << 2 | (m != 0));
}

/* P. Zimmermann, "Karatsuba Square Root" (1999): from the root of the upper half of the bits, and
   the remainder, one division gives the lower bits of the root. */
OPERATION("f32.sqrt") u32 float32_sqrt(u32 a) {
  if (magnitude32(a) == 0) return a;
  if (a >= INF32) return a == INF32 ? a : NAN32;
  u32 m = a;
  i32 e = unpack32(&m);
  u32 upper = m << (e & 1 ? 7 : 8); /* in [2^30, 2^32); eighteen zeros follow */
  u32 root = word_root(upper), numerator = (upper - root * root) << 9;
  u32 digit = numerator / (root << 1);
  u32 rest = ((numerator - digit * (root << 1)) << 9) - digit * digit;
  root = (root << 9) + digit;
  if ((i32)rest < 0) {
    OPAQUE(rest);
    root--, rest += 2 * root + 1;
  }
  return pack32(0, (e + 127) >> 1, root << 2 | (rest != 0));
}

/* --- comparisons ----------------------------------------------------------------------------- */

INLINE u32 ordered32(u32 a, u32 b) { return !is_nan32(a) && !is_nan32(b); }
INLINE u32 zeros32(u32 a, u32 b) { return ((a | b) << 1) == 0; }

/* Of numbers that are not NaN; -0 is below +0 if ``total`` is 1. */
INLINE u32 below32(u32 a, u32 b, u32 total) {
  if ((i32)(a ^ b) < 0) {
    OPAQUE(a);
    return (i32)a < 0 && (total || !zeros32(a, b));
  }
  OPAQUE(a);
  return (i32)a < 0 ? a > b : a < b;
}

OPERATION("f32.eq") u32 float32_eq(u32 a, u32 b) {
  return (a == b && !is_nan32(a)) || zeros32(a, b);
}
OPERATION("f32.ne") u32 float32_ne(u32 a, u32 b) { return !float32_eq(a, b); }
OPERATION("f32.lt") u32 float32_lt(u32 a, u32 b) {
  return ordered32(a, b) && below32(a, b, 0);
}
OPERATION("f32.le") u32 float32_le(u32 a, u32 b) {
  return ordered32(a, b) && !below32(b, a, 0);
}
OPERATION("f32.gt") u32 float32_gt(u32 a, u32 b) {
  return ordered32(a, b) && below32(b, a, 0);
}
OPERATION("f32.ge") u32 float32_ge(u32 a, u32 b) {
  return ordered32(a, b) && !below32(a, b, 0);
}

OPERATION("f32.min") u32 float32_min(u32 a, u32 b) {
  if (!ordered32(a, b)) return NAN32;
  return below32(a, b, 1) ? a : b;
}

OPERATION("f32.max") u32 float32_max(u32 a, u32 b) {
  if (!ordered32(a, b)) return NAN32;
  return below32(a, b, 1) ? b : a;
}

/* --- rounding to an integer ------------------------------------------------------------------ */

/* Bits of the fraction of a number in [1, 2^23), as a mask. */
INLINE u32 fraction32(u32 a) { return 0x7FFFFFu >> ((a >> 23 & 255) - 127); }

#define WHOLE32(a)                                           \
  if (magnitude32(a) >= 0x4B000000) return is_nan32(a) ? NAN32 : a; \
  if (magnitude32(a) == 0) return a;

OPERATION("f32.trunc") u32 float32_trunc(u32 a) {
  WHOLE32(a)
  if (magnitude32(a) < 0x3F800000) return a & SIGN32;
  return a & ~fraction32(a);
}

OPERATION("f32.floor") u32 float32_floor(u32 a) {
  WHOLE32(a)
  if (magnitude32(a) < 0x3F800000) return (i32)a < 0 ? 0xBF800000 : 0;
  u32 mask = fraction32(a);
  return (a + ((i32)a < 0 ? mask : 0)) & ~mask;
}

OPERATION("f32.ceil") u32 float32_ceil(u32 a) {
  WHOLE32(a)
  if (magnitude32(a) < 0x3F800000) return (i32)a < 0 ? SIGN32 : 0x3F800000;
  u32 mask = fraction32(a);
  return (a + ((i32)a < 0 ? 0 : mask)) & ~mask;
}

OPERATION("f32.nearest") u32 float32_nearest(u32 a) {
  WHOLE32(a)
  u32 x = magnitude32(a), sign = a & SIGN32;
  if (x < 0x3F800000) return x > 0x3F000000 ? sign | 0x3F800000 : sign;
  /* the bit above the fraction; for numbers below 2 it is that of the exponent, which is odd too */
  u32 mask = fraction32(a), odd = (x & (mask + 1)) != 0;
  return sign | ((x + (mask >> 1) + odd) & ~mask);
}
