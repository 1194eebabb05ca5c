/* What specialised code calls: integers in place of positions and corners. */

static inline int64_t at_least_0(int64_t i)
{
    return i > 0 ? i : 0;
}

static inline int64_t at_most(int64_t i, int64_t last)
{
    return i < last ? i : last;
}

/* Whether a flag is set for one of some tokens; the last is followed by -1. */
static int any_of(const uint8_t *flags, const int32_t *tokens)
{
    int found = 0;
    for (; *tokens >= 0; tokens++)
        found |= flags[*tokens];
    return found;
}

/* `nearest` for a number that is finite. */
static inline int64_t nearest_position(double e, int64_t p)
{
    double last = (double)p;
    double clamped = e < last ? e : last;
    clamped = clamped > 0.0 ? clamped : 0.0;
    int64_t below = (int64_t)clamped;
    return below + (clamped - (double)below >= 0.5);
}

/* How many of n ascending numbers, about 1 / scale apart, are less than y. */
static inline int64_t corners_near(const double *corners, int64_t n, double y, double scale)
{
    double z = (y - corners[0]) * scale;
    int64_t i = z > 0.0 ? z < (double)(n - 1) ? (int64_t)z + 1 : n : 0;
    while (i > 0 && y <= corners[i - 1])
        i--;
    while (i < n && y > corners[i])
        i++;
    return i;
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
