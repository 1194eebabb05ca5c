/* Conversions between integers and floats, and between the two sizes of floats. */
#include "float32.h"
#include "float64.h"

/* --- integers to floats ---------------------------------------------------------------------- */

INLINE u32 word_to_f32(u32 sign, u32 x) {
  if (x == 0) return sign;
  u32 n = (u32)__builtin_clz(x);
  x <<= n;
  return pack32(sign, 158 - (i32)n, x >> 5 | ((x & 31) != 0));
}

static u32 pair_to_f32(u32 sign, u32 hi, u32 lo) {
  if (hi == 0) return word_to_f32(sign, lo);
  OPAQUE(hi);
  u32 n = (u32)__builtin_clz(hi), rest = lo << n;
  hi = hi << n | lo >> 1 >> (~n & 31);
  return pack32(sign, 190 - (i32)n, hi >> 5 | (((hi & 31) | rest) != 0));
}

INLINE u64 word_to_f64(u32 sign, u32 x) {
  if (x == 0) return pair(sign, 0);
  u32 n = (u32)__builtin_clz(x);
  x <<= n;
  return pair(sign | (((1053 - n) << 20) + (x >> 11)), x << 21);
}

static u64 pair_to_f64(u32 sign, u32 hi, u32 lo) {
  if (hi == 0) return word_to_f64(sign, lo);
  OPAQUE(hi);
  u32 n = (u32)__builtin_clz(hi), rest = lo << n;
  hi = hi << n | lo >> 1 >> (~n & 31);
  return pack64(sign, 1086 - (i32)n, hi >> 8, hi << 24 | rest >> 8 | ((rest & 255) != 0));
}

INLINE u32 sign_of(u32 a) { return a & 0x80000000u; }
INLINE u32 absolute(u32 a) { return (i32)a < 0 ? -a : a; }
INLINE u64 absolute_pair(u64 a) { return (i64)a < 0 ? -a : a; }

OPERATION("f32.convert_i32_u") u32 float32_from_u32(u32 a) { return word_to_f32(0, a); }
OPERATION("f32.convert_i32_s") u32 float32_from_i32(u32 a) {
  return word_to_f32(sign_of(a), absolute(a));
}
OPERATION("f32.convert_i64_u") u32 float32_from_u64(u64 a) {
  return pair_to_f32(0, high(a), low(a));
}
OPERATION("f32.convert_i64_s") u32 float32_from_i64(u64 a) {
  u64 x = absolute_pair(a);
  return pair_to_f32(sign_of(high(a)), high(x), low(x));
}
OPERATION("f64.convert_i32_u") u64 float64_from_u32(u32 a) { return word_to_f64(0, a); }
OPERATION("f64.convert_i32_s") u64 float64_from_i32(u32 a) {
  return word_to_f64(sign_of(a), absolute(a));
}
OPERATION("f64.convert_i64_u") u64 float64_from_u64(u64 a) {
  return pair_to_f64(0, high(a), low(a));
}
OPERATION("f64.convert_i64_s") u64 float64_from_i64(u64 a) {
  u64 x = absolute_pair(a);
  return pair_to_f64(sign_of(high(a)), high(x), low(x));
}

/* --- between floats -------------------------------------------------------------------------- */

OPERATION("f32.demote_f64") u32 float32_demote(u64 a) {
  u32 x = magnitude64(a), lo = low(a), sign = sign_of(high(a));
  if (x >= INF64) return is_nan64(a) ? NAN32 : sign | INF32;
  i32 e = (i32)(x >> 20) - 896;
  if (e < -24) return sign; /* below half the smallest number */
  u32 m = ((x & 0xFFFFF) | 0x100000) << 6 | lo >> 26;
  return pack_any32(sign, e, m | (lo << 6 != 0));
}

OPERATION("f64.promote_f32") u64 float64_promote(u32 a) {
  u32 x = magnitude32(a), sign = sign_of(a);
  if (x >= INF32) return x > INF32 ? NAN64 : pair(sign | INF64, 0);
  if (x >= 0x800000) return pair(sign | ((x >> 3) + (896u << 20)), x << 29);
  if (x == 0) return pair(sign, 0);
  u32 up = (u32)__builtin_clz(x) - 8;
  x <<= up;
  return pair(sign | ((x >> 3) + ((896 - up) << 20)), x << 29);
}

/* --- floats to integers ---------------------------------------------------------------------- */

/* A finite number is (top.rest) * 2^n with the highest bit of top set; of infinities and NaNs n is
   greater than that of any integer. */
typedef enum { TRAPS, SATURATES } Mode;

INLINE u32 to_word(u32 sign, i32 n, u32 top, u32 nan, u32 is_signed, Mode mode) {
  if (n < 0) return 0;
  if (nan) {
    if (mode == SATURATES) return 0;
    trap_invalid_conversion();
  }
  u32 most = is_signed ? 0x7FFFFFFFu + (sign != 0) : sign ? 0 : 0xFFFFFFFF;
  if (n < 32) {
    top >>= 31 - n;
    if (top <= most) return sign ? -top : top;
  }
  if (mode == TRAPS) trap_integer_overflow();
  return sign ? -most : most;
}

INLINE u64 to_pair(u32 sign, i32 n, u32 top, u32 rest, u32 nan, u32 is_signed, Mode mode) {
  if (n < 32 && (is_signed || !sign)) { /* a word, and its sign */
    if (n < 0) return 0;
    top >>= 31 - n;
    return sign ? pair(-(u32)(top != 0), -top) : top;
  }
  if (n < 0) return 0;
  if (nan) {
    if (mode == SATURATES) return 0;
    trap_invalid_conversion();
  }
  if (n < 63 || (n == 63 && !is_signed) || (n == 63 && sign && top == 0x80000000 && rest == 0)) {
    if (is_signed || !sign) {
      u32 down = (u32)(63 - n);
      u32 lo = rest >> down | top << 1 << (~down & 31), hi = top >> down;
      return sign ? pair(-hi - (lo != 0), -lo) : pair(hi, lo);
    }
  }
  if (mode == TRAPS) trap_integer_overflow();
  if (!is_signed) return sign ? 0 : ~0ull;
  return sign ? pair(0x80000000, 0) : pair(0x7FFFFFFF, 0xFFFFFFFF);
}

#define FROM_F32(convert, ...) \
  convert(sign_of(a), (i32)(a >> 23 & 255) - 127, a << 8 | 0x80000000u, __VA_ARGS__)
#define FROM_F64(convert, ...) \
  convert(sign_of(high(a)), (i32)(high(a) >> 20 & 2047) - 1023, \
          high(a) << 11 | low(a) >> 21 | 0x80000000u, __VA_ARGS__)

#define TO_INTEGERS(name, suffix, is_signed, mode) \
  OPERATION("i32." name "_f32_" #suffix) u32 word_from_f32_##mode##suffix(u32 a) { \
    return FROM_F32(to_word, is_nan32(a), is_signed, mode); \
  } \
  OPERATION("i32." name "_f64_" #suffix) u32 word_from_f64_##mode##suffix(u64 a) { \
    return FROM_F64(to_word, is_nan64(a), is_signed, mode); \
  } \
  OPERATION("i64." name "_f32_" #suffix) u64 pair_from_f32_##mode##suffix(u32 a) { \
    return FROM_F32(to_pair, 0, is_nan32(a), is_signed, mode); \
  } \
  OPERATION("i64." name "_f64_" #suffix) u64 pair_from_f64_##mode##suffix(u64 a) { \
    return FROM_F64(to_pair, low(a) << 11, is_nan64(a), is_signed, mode); \
  }

TO_INTEGERS("trunc", s, 1, TRAPS)
TO_INTEGERS("trunc", u, 0, TRAPS)
TO_INTEGERS("trunc_sat", s, 1, SATURATES)
TO_INTEGERS("trunc_sat", u, 0, SATURATES)
