/* Signs of sums of products of doubles, decided exactly; and the two questions a hull asks.

   A quotient or a product in double settles all but near ties. Those are settled in 128-bit
   integers where all numbers are integers below 2^60, and else in one long fixed-point number
   that holds every product of two finite doubles. The filter is that of hullcache/exact.py. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SLACK 0x1p-50
#define TINY 1e-300
#define LIMIT 0x1p1022 /* coordinates stay below, so that differences do not overflow */

enum { WORDS = 68, LOWEST = 2148 }; /* 2^-2148 is the least bit of a product */

/* Add the product of a and b, times sign, to a two's complement number of WORDS words. */
static void add_product(uint64_t *words, double a, double b)
{
    int ea, eb;
    int64_t ma = (int64_t)(frexp(a, &ea) * 0x1p53), mb = (int64_t)(frexp(b, &eb) * 0x1p53);
    __int128 product = (__int128)ma * mb;
    int at = ea + eb - 106 + LOWEST;
    /* The mantissa of a subnormal is padded with zeros, which may reach below the least bit. */
    while (at < 0) {
        product /= 2;
        at++;
    }
    unsigned shift = at % 64, word = at / 64;
    uint64_t fill = product < 0 ? ~(uint64_t)0 : 0;
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    uint64_t part[3] = {low, high, fill};
    if (shift) {
        part[0] = low << shift;
        part[1] = high << shift | low >> (64 - shift);
        part[2] = fill << shift | high >> (64 - shift);
    }
    unsigned carry = 0;
    for (unsigned i = word; i < WORDS; i++) {
        uint64_t term = i - word < 3 ? part[i - word] : fill;
        uint64_t sum = words[i] + term, more = sum < term;
        words[i] = sum + carry;
        carry = more | (words[i] < sum);
    }
}

static int all_small_integers(const double *numbers, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(numbers[i]) < 0x1p60) || numbers[i] != (double)(int64_t)numbers[i])
            return 0;
    return 1;
}

/* Sign of the sum of n products factors[2 i] * factors[2 i + 1], finite numbers. */
static int sign_of_products(const double *factors, int n)
{
    uint64_t words[WORDS];
    memset(words, 0, sizeof words);
    for (int i = 0; i < n; i++)
        if (factors[2 * i] != 0.0 && factors[2 * i + 1] != 0.0)
            add_product(words, factors[2 * i], factors[2 * i + 1]);
    if (words[WORDS - 1] >> 63)
        return -1;
    for (int i = 0; i < WORDS; i++)
        if (words[i])
            return 1;
    return 0;
}

static int sign128(__int128 number)
{
    return (number > 0) - (number < 0);
}

/* Where b lies, ax < bx < cx: above (1), on (0) or below (-1) the line from a to c. */
static int height(double ax, double ay, double bx, double by, double cx, double cy)
{
    double before = (ay - by) / (bx - ax), after = (by - cy) / (cx - bx);
    double slack = fabs(after) * SLACK + TINY;
    if (before < after - slack)
        return 1;
    if (before > after + slack)
        return -1;
    double numbers[6] = {ax, ay, bx, by, cx, cy};
    if (all_small_integers(numbers, 6)) {
        int64_t x = (int64_t)ax, y = (int64_t)ay;
        __int128 first = (__int128)((int64_t)by - y) * ((int64_t)cx - x);
        __int128 second = (__int128)((int64_t)cy - y) * ((int64_t)bx - x);
        return sign128(first - second);
    }
    /* (by - ay)(cx - ax) - (cy - ay)(bx - ax), multiplied out; ay ax cancels */
    double products[12] = {by, cx, -by, ax, -ay, cx, -cy, bx, cy, ax, ay, bx};
    return sign_of_products(products, 6);
}

/* Sign of q b - q a: whether key b scores above, below or level with key a. */
static int score_change(double qx, double qy, double ax, double ay, double bx, double by)
{
    double across = qx * (bx - ax), up = qy * (by - ay);
    double slack = (fabs(across) + fabs(up)) * SLACK + TINY;
    if (across + up > slack)
        return 1;
    if (across + up < -slack)
        return -1;
    double numbers[6] = {qx, qy, ax, ay, bx, by};
    if (all_small_integers(numbers, 6)) {
        __int128 first = (__int128)(int64_t)qx * ((int64_t)bx - (int64_t)ax);
        return sign128(first + (__int128)(int64_t)qy * ((int64_t)by - (int64_t)ay));
    }
    double products[8] = {qx, bx, -qx, ax, qy, by, -qy, ay};
    return sign_of_products(products, 4);
}
