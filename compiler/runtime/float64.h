/* f64 as two words: helpers that float64.c and convert.c share.

   A number under way is (exponent, mantissa): the biased exponent, and 53 bits of the mantissa
   followed by three more, in two words, of which the last is set if anything below it is not zero.
   Subnormal numbers have the exponent 1 and a mantissa below 2^55. */
#ifndef FLOAT64_H
#define FLOAT64_H
#include "runtime.h"

#define NAN64 0x7FF8000000000000ull
#define INF64 0x7FF00000u /* the high words of infinity and of the sign */
#define SIGN64 0x80000000u
#define ONE64 (1u << 23) /* high word of the mantissa of 1.0 */

INLINE u32 magnitude64(u64 a) { return high(a) & ~SIGN64; }
INLINE u32 is_nan64(u64 a) { return (magnitude64(a) | (low(a) != 0)) > INF64; }

/* Round and pack; the exponent is in [1, 2046]. Adding a half, less the least unless the last bit
   is odd, carries into that bit where the number is to be rounded up; from the mantissa it carries
   into the exponent. */
INLINE u64 pack64(u32 sign, i32 e, u32 hi, u32 lo) {
  u32 sum = lo + 3 + (lo >> 3 & 1);
  hi += sum < lo;
  return pair(sign | ((hi >> 3) + ((u32)(e - 1) << 20)), sum >> 3 | hi << 29);
}

/* The same for any exponent. */
INLINE u64 pack_any64(u32 sign, i32 e, u32 hi, u32 lo) {
  if ((u32)(e - 1) >= 2046) {
    OPAQUE(e); /* seldom */
    if (e > 0) return pair(sign | INF64, 0);
    shift_right_sticky(&hi, &lo, (u32)(1 - e));
    e = 1;
  }
  return pack64(sign, e, hi, lo);
}

#endif
