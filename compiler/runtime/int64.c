/* i64 instructions on halves. Division: "Hacker's Delight" (H. Warren), chapter 9, and D. Knuth,
   "The Art of Computer Programming", volume 2, 4.3.1, algorithm D, with digits of 16 bits. */
#include "runtime.h"

/* The product of two numbers without high halves. */
OPERATION("i64.mul_wide") u64 int64_mul_wide(u32 a, u32 b) {
  return pair(high_product(a, b), a * b);
}

OPERATION("i64.mul") u64 int64_mul(u64 a, u64 b) {
  u32 a0 = low(a), b0 = low(b);
  OPAQUE(a0);
  u32 cross = a0 * high(b) + high(a) * b0;
  return pair(high_product(a0, b0) + cross, a0 * b0);
}

/* --- shifts: the count is a word of which six bits matter ------------------------------------ */

OPERATION("i64.shl") u64 int64_shl(u64 a, u32 count) {
  u32 lo = low(a), hi = high(a);
  if (count & 32) return pair(lo << (count & 31), 0);
  return pair(hi << (count & 31) | lo >> 1 >> (~count & 31), lo << (count & 31));
}

OPERATION("i64.shr_u") u64 int64_shr_u(u64 a, u32 count) {
  u32 lo = low(a), hi = high(a);
  if (count & 32) return hi >> (count & 31);
  return pair(hi >> (count & 31), lo >> (count & 31) | hi << 1 << (~count & 31));
}

OPERATION("i64.shr_s") u64 int64_shr_s(u64 a, u32 count) {
  u32 lo = low(a);
  i32 hi = (i32)high(a);
  if (count & 32) return pair((u32)(hi >> 31), (u32)(hi >> (count & 31)));
  u32 shifted = lo >> (count & 31) | (u32)hi << 1 << (~count & 31);
  return pair((u32)(hi >> (count & 31)), shifted);
}

OPERATION("i64.rotl") u64 int64_rotl(u64 a, u32 count) {
  u32 lo = low(a), hi = high(a), n = count & 31, rest = ~count & 31;
  u32 new_lo = lo << n | hi >> 1 >> rest, new_hi = hi << n | lo >> 1 >> rest;
  return count & 32 ? pair(new_lo, new_hi) : pair(new_hi, new_lo);
}

OPERATION("i64.rotr") u64 int64_rotr(u64 a, u32 count) { return int64_rotl(a, -count); }

OPERATION("i64.clz") u64 int64_clz(u64 a) {
  u32 hi = high(a), lo = low(a);
  if (hi) return (u32)__builtin_clz(hi);
  OPAQUE(lo); /* or both counts would be computed */
  return lo ? 32 + (u32)__builtin_clz(lo) : 64;
}

OPERATION("i64.ctz") u64 int64_ctz(u64 a) {
  u32 hi = high(a), lo = low(a);
  if (lo) return (u32)__builtin_ctz(lo);
  OPAQUE(hi);
  return hi ? 32 + (u32)__builtin_ctz(hi) : 64;
}

/* --- division -------------------------------------------------------------------------------- */

/* A digit of 16 bits: quotient of (u, next) by the divisor d1 * 2^16 + d0 whose top bit is set,
   where u is below the divisor and next has 16 bits. The estimate is at most two too great. */
INLINE u32 digit(u32 u, u32 next, u32 d1, u32 d0) {
  u32 q = u / d1, r = u - q * d1, product = q * d0;
  if (product > (r << 16 | next)) {
    q--, r += d1;
    if (r < 0x10000 && product - d0 > (r << 16 | next)) q--;
  }
  return q;
}

/* Quotient of (hi, lo) by a divisor with its top bit set, hi < divisor. */
static u32 divide_normal(u32 hi, u32 lo, u32 divisor) {
  u32 d1 = divisor >> 16, d0 = divisor & 0xFFFF;
  u32 q1 = digit(hi, lo >> 16, d1, d0);
  u32 rest = (hi << 16 | lo >> 16) - q1 * divisor;
  return (q1 << 16) + digit(rest, lo & 0xFFFF, d1, d0);
}

/* Quotient of (hi, lo) by a word, hi < divisor. */
static u32 divide_word(u32 hi, u32 lo, u32 divisor) {
  if (hi == 0) return lo / divisor;
  if (divisor < 0x10000) {
    u32 upper = hi << 16 | lo >> 16, q1 = upper / divisor;
    u32 lower = (upper - q1 * divisor) << 16 | (lo & 0xFFFF);
    return q1 << 16 | lower / divisor;
  }
  u32 n = (u32)__builtin_clz(divisor);
  return divide_normal(hi << n | lo >> 1 >> (~n & 31), lo << n, divisor << n);
}

/* Quotient of a by b where b has a high half: one digit of 32 bits. */
static u32 divide_wide(u64 a, u64 b) {
  u32 n = (u32)__builtin_clz(high(b));
  u32 divisor = high(b) << n | low(b) >> 1 >> (~n & 31);
  u32 q = divide_normal(high(a) >> 1, high(a) << 31 | low(a) >> 1, divisor);
  q >>= ~n & 31; /* the divisor was shifted by n, a by one to the right */
  if (q) q--;
  /* q is right or too small by one */
  u32 q_lo = q * low(b), q_hi = high_product(q, low(b)) + q * high(b);
  u64 rest = a - pair(q_hi, q_lo);
  return q + (rest >= b);
}

INLINE u64 divide(u64 a, u64 b) {
  u32 divisor = low(b), hi = high(a);
  if (high(b)) return a < b ? 0 : divide_wide(a, b);
  if (hi == 0) return low(a) / divisor; /* traps if it is 0 */
  if (hi < divisor) return divide_word(hi, low(a), divisor);
  u32 q = hi / divisor;
  return pair(q, divide_word(hi - q * divisor, low(a), divisor));
}

/* Quotient by a divisor of 16 bits that is not 0. */
OPERATION("i64.div_small") u64 int64_div_small(u64 a, u32 divisor) {
  u32 hi = high(a), lo = low(a);
  if (hi == 0) return lo / divisor;
  u32 q = hi / divisor;
  u32 upper = (hi - q * divisor) << 16 | lo >> 16, q1 = upper / divisor;
  u32 lower = (upper - q1 * divisor) << 16 | (lo & 0xFFFF);
  return pair(q, q1 << 16 | lower / divisor);
}

OPERATION("i64.div_u") u64 int64_div_u(u64 a, u64 b) { return divide(a, b); }

OPERATION("i64.rem_u") u64 int64_rem_u(u64 a, u64 b) {
  if (high(a) == 0 && high(b) == 0) return low(a) % low(b);
  u64 q = int64_div_u(a, b);
  return a - int64_mul(q, b);
}

/* The negative number if sign is -1, the number itself if it is 0. */
INLINE u64 negated_if(u64 a, i32 sign) {
  u32 lo = (low(a) ^ (u32)sign) - (u32)sign;
  return pair((high(a) ^ (u32)sign) + (sign && !lo), lo);
}

OPERATION("i64.div_s") u64 int64_div_s(u64 a, u64 b) {
  i32 sign_a = (i32)high(a) >> 31, sign_b = (i32)high(b) >> 31;
  if ((sign_a | sign_b) == 0) return int64_div_u(a, b);
  if ((high(b) & low(b)) == 0xFFFFFFFF && high(a) == 0x80000000 && low(a) == 0)
    trap_integer_overflow();
  return negated_if(int64_div_u(negated_if(a, sign_a), negated_if(b, sign_b)), sign_a ^ sign_b);
}

OPERATION("i64.rem_s") u64 int64_rem_s(u64 a, u64 b) {
  i32 sign_a = (i32)high(a) >> 31, sign_b = (i32)high(b) >> 31;
  if ((sign_a | sign_b) == 0) return int64_rem_u(a, b);
  return negated_if(int64_rem_u(negated_if(a, sign_a), negated_if(b, sign_b)), sign_a);
}
