/* What specialised code calls: integers in place of positions and corners. */

static inline int64_t at_least_0(int64_t i)
{
    return i > 0 ? i : 0;
}

static inline int64_t at_most(int64_t i, int64_t last)
{
    return i < last ? i : last;
}

/* The least integer from z on, from 0 to last. */
static inline int64_t rounded_up(double z, int64_t last)
{
    if (!(z > 0.0))
        return 0;
    if (z >= (double)last)
        return last;
    int64_t below = (int64_t)z;
    return below + (z > (double)below);
}

/* How many of n ascending numbers are less than y. */
static int64_t corners_below(const double *corners, int64_t n, double y)
{
    int64_t low = 0;
    while (low < n) {
        int64_t middle = (low + n) / 2;
        if (y > corners[middle])
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}
