/* f32 as a word: helpers that float32.c and convert.c share.

   A number under way is (exponent, mantissa): the biased exponent and the 24 bits of the mantissa
   followed by three more, of which the last is set if anything below it is not zero. Subnormal
   numbers have the exponent 1 and a mantissa below 2^26. */
#ifndef FLOAT32_H
#define FLOAT32_H
#include "runtime.h"

#define NAN32 0x7FC00000u
#define INF32 0x7F800000u
#define SIGN32 0x80000000u
#define ONE32 (1u << 26) /* the mantissa of 1.0 */

INLINE u32 magnitude32(u32 a) { return a & ~SIGN32; }
INLINE u32 is_nan32(u32 a) { return magnitude32(a) > INF32; }
INLINE u32 shift32(u32 m, u32 n) { return n < 32 ? m >> n | (m << (32 - n) != 0) : m != 0; }

/* Round and pack; the exponent is in [1, 254]. Adding a half, less the least unless the last bit is
   odd, carries into that bit where the number is to be rounded up. */
INLINE u32 pack32(u32 sign, i32 e, u32 m) {
  return sign | (((m + 3 + (m >> 3 & 1)) >> 3) + ((u32)(e - 1) << 23));
}

/* The same for any exponent. */
INLINE u32 pack_any32(u32 sign, i32 e, u32 m) {
  if ((u32)(e - 1) >= 254) {
    OPAQUE(e); /* seldom */
    if (e > 0) return sign | INF32;
    m = shift32(m, (u32)(1 - e)), e = 1;
  }
  return pack32(sign, e, m);
}

#endif
