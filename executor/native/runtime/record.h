/* Records of keys, how records of tied keys merge, and where they come from.

   A record is a weight and then the values. Mode latest: the weight is the position. Mode mean:
   the weight is the number of keys merged, the values are their sums. */

#include <stdlib.h>

typedef union {
    int64_t i;
    double d;
} cell;

/* What failed; the engine stops there. */
enum { FINE, OUT_OF_MEMORY, NOT_FINITE, TOO_LONG };

typedef struct {
    int error;
    int odd;       /* an error, or some table's keys were not as guessed */
    int scanning;  /* for scan.h alone: whether scans answer, not hulls */
    int64_t bytes; /* allocated for the sequence so far */
} status;

static void fail(status *s, int error)
{
    if (!s->error)
        s->error = error;
    s->odd = 1;
}

/* realloc that counts; on failure the block is unchanged, and s->error is set. */
static void *resized(status *s, void *block, size_t old, size_t new)
{
    void *result = realloc(block, new);
    if (!result) {
        fail(s, OUT_OF_MEMORY);
        return NULL;
    }
    s->bytes += (int64_t)new - (int64_t)old;
    return result;
}

static void join(int mean, int width, cell *into, const cell *from)
{
    if (mean) {
        into[0].i += from[0].i;
        for (int k = 1; k <= width; k++)
            into[k].d += from[k].d;
    } else if (from[0].i > into[0].i)
        memcpy(into, from, sizeof(cell) * (1 + (size_t)width));
}

static void copy_record(int width, cell *into, const cell *from)
{
    memcpy(into, from, sizeof(cell) * (1 + (size_t)width));
}

/* The record of two tied keys: one of them, or their sums in mode mean, which go to ``result``
   (that may be ``one``). */
static const cell *merged(int mean, int width, const cell *one, const cell *other, cell *result)
{
    if (!mean)
        return other[0].i > one[0].i ? other : one;
    if (one != result)
        copy_record(width, result, one);
    join(mean, width, result, other);
    return result;
}
