/* The standard cache of one head: all keys and records, and a scan of them for every query.

   The yardstick for hull.h, with its contract. So that long sequences can be filled in a bearable
   time, a hull answers until status.scanning is set; from then on keys go into the arrays alone.
   A scan computes q.k for every key once, remembers the greatest score of every block, and looks
   again only at the blocks that may hold it: near ties are compared exactly. */

typedef struct {
    hull hull;
    int64_t count, room;
    double *x, *y, *greatest; /* of the scores of each block */
    cell *records;
    double reach_x, reach_y; /* the largest |x| and |y| bound the rounding of scores */
    cell *fresh;
} scan;

enum { SCAN_BLOCK = 1024 };

/* Start an empty head; 0 if there is no memory. */
static int scan_start(scan *s, status *status, int mean, int width, int downwards)
{
    memset(s, 0, sizeof *s);
    int started = hull_start(&s->hull, status, mean, width, downwards);
    s->fresh = s->hull.fresh;
    return started;
}

static void scan_clear(scan *s)
{
    int64_t each = (int64_t)(2 * sizeof(double) + (1 + (size_t)s->hull.width) * sizeof(cell));
    if (s->hull.status)
        s->hull.status->bytes -= s->room * each + s->room / SCAN_BLOCK * (int64_t)sizeof(double);
    hull_clear(&s->hull);
    free(s->x);
    free(s->y);
    free(s->greatest);
    free(s->records);
    memset(s, 0, sizeof *s);
}

/* Room for one more key; 0 if there is none. */
static int scan_reserve(scan *s)
{
    if (s->count < s->room)
        return 1;
    status *status = s->hull.status;
    size_t old = (size_t)s->room, new = 2 * old + SCAN_BLOCK, row = 1 + (size_t)s->hull.width;
    double *x = resized(status, s->x, old * sizeof *x, new * sizeof *x);
    s->x = x ? x : s->x;
    double *y = x ? resized(status, s->y, old * sizeof *y, new * sizeof *y) : NULL;
    s->y = y ? y : s->y;
    size_t before = old / SCAN_BLOCK * sizeof(double), after = new / SCAN_BLOCK * sizeof(double);
    double *greatest = y ? resized(status, s->greatest, before, after) : NULL;
    s->greatest = greatest ? greatest : s->greatest;
    size_t size = row * sizeof(cell);
    cell *records = greatest ? resized(status, s->records, old * size, new * size) : NULL;
    if (!records)
        return 0;
    s->records = records;
    s->room = (int64_t)new;
    return 1;
}

static void scan_insert(scan *s, double x, double y, const cell *record)
{
    status *status = s->hull.status;
    if (!status->scanning) {
        hull_insert(&s->hull, x, y, record);
        if (status->error)
            return;
    } else if (!(fabs(x) < LIMIT && fabs(y) < LIMIT)) {
        fail(status, NOT_FINITE);
        return;
    }
    if (!scan_reserve(s))
        return;
    s->x[s->count] = x;
    s->y[s->count] = y;
    s->reach_x = fabs(x) > s->reach_x ? fabs(x) : s->reach_x;
    s->reach_y = fabs(y) > s->reach_y ? fabs(y) : s->reach_y;
    copy_record(s->hull.width, s->records + s->count++ * (1 + s->hull.width), record);
}

typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_mask __attribute__((vector_size(16)));

static inline pair greater(pair a, pair b)
{
    pair_mask first = a > b;
    return (pair)(((pair_mask)a & first) | ((pair_mask)b & ~first));
}

/* The greatest score of n keys, eight at a time. */
static double scan_block(const double *x, const double *y, int64_t n, double qx, double qy)
{
    const pair least = {-INFINITY, -INFINITY}, px = {qx, qx}, py = {qy, qy};
    pair best[4] = {least, least, least, least};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 4; k++) {
            pair u, v;
            memcpy(&u, x + i + 2 * k, sizeof u);
            memcpy(&v, y + i + 2 * k, sizeof v);
            best[k] = greater(px * u + py * v, best[k]);
        }
    for (; i < n; i++) {
        double score = qx * x[i] + qy * y[i];
        best[0] = greater((pair){score, score}, best[0]);
    }
    pair all = greater(greater(best[0], best[1]), greater(best[2], best[3]));
    return all[0] > all[1] ? all[0] : all[1];
}

/* The record of all keys with the greatest score, merged. The head is not empty. */
static const cell *scan_query(scan *s, double qx, double qy)
{
    hull *h = &s->hull;
    if (!h->status->scanning)
        return hull_query(h, qx, qy);
    if (!(fabs(qx) < LIMIT && fabs(qy) < LIMIT)) {
        fail(h->status, NOT_FINITE);
        return h->total;
    }
    double best = -INFINITY;
    for (int64_t start = 0, block = 0; start < s->count; start += SCAN_BLOCK, block++) {
        int64_t n = s->count - start < SCAN_BLOCK ? s->count - start : SCAN_BLOCK;
        double score = scan_block(s->x + start, s->y + start, n, qx, qy);
        s->greatest[block] = score;
        best = score > best ? score : best;
    }
    double least = best - ((fabs(qx) * s->reach_x + fabs(qy) * s->reach_y) * SLACK + TINY);
    int width = h->width;
    int64_t winner = -1;
    const cell *found = h->total;
    for (int64_t start = 0, block = 0; start < s->count; start += SCAN_BLOCK, block++) {
        if (s->greatest[block] < least)
            continue;
        int64_t end = s->count - start < SCAN_BLOCK ? s->count : start + SCAN_BLOCK;
        for (int64_t i = start; i < end; i++) {
            if (qx * s->x[i] + qy * s->y[i] < least)
                continue;
            int change = winner < 0 ? 1 : score_change(qx, qy, s->x[winner], s->y[winner], s->x[i], s->y[i]);
            const cell *record = s->records + i * (1 + width);
            if (change > 0) {
                winner = i;
                found = record;
            } else if (change == 0)
                found = merged(h->mean, width, found, record, h->scratch);
        }
    }
    return found;
}
