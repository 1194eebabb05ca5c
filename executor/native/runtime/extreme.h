/* Heads whose query always has the same direction along an axis: only the greatest key counts. */

typedef struct {
    double key;
    int64_t weight; /* negative: no key yet */
} extreme;

/* Whether a new key replaces (1), joins (0) or loses to (-1) the record. */
static inline int extreme_compare(status *s, const extreme *x, double key)
{
    if (!(fabs(key) < LIMIT))
        fail(s, NOT_FINITE);
    return x->weight < 0 || key > x->key ? 1 : key == x->key ? 0 : -1;
}
