/* Heads whose keys take few distinct values, each a function of the token: one record a value. */

enum { SCANNED = 8 }; /* more keys are searched */

typedef struct {
    const double *keys; /* n pairs */
    int n, mean, width;
    cell *records; /* n, then one to insert and one for results; weight -1: no such key yet */
    int *corners;  /* of the keys so far: their upper hull, from left to right */
    double *edges; /* about the qx at which corner i and the next tie */
    int n_corners; /* -1: a key is new */
    void (*changes)(void *owner, int64_t position); /* called before a key is new */
    void *owner;
} few;

static cell *few_record(const few *f, int i)
{
    return f->records + (size_t)i * (1 + (size_t)f->width);
}

static int few_start(few *f, status *s, int mean, int width, const double *keys, int n)
{
    size_t bytes = ((size_t)n + 2) * (1 + (size_t)width) * sizeof(cell);
    *f = (few){keys, n, mean, width, resized(s, NULL, 0, bytes), NULL, NULL, -1, NULL, NULL};
    f->corners = resized(s, NULL, 0, (size_t)n * sizeof(int));
    f->edges = resized(s, NULL, 0, (size_t)n * sizeof(double));
    if (!f->records || !f->corners || !f->edges)
        return 0;
    for (int i = 0; i < n; i++)
        few_record(f, i)->i = -1;
    return 1;
}

static void few_clear(few *f)
{
    free(f->records);
    free(f->corners);
    free(f->edges);
}

static cell *few_fresh(const few *f)
{
    return few_record(f, f->n);
}

static void few_insert(few *f, int key)
{
    cell *record = few_record(f, key);
    if (record->i < 0) {
        if (f->changes)
            f->changes(f->owner, few_fresh(f)->i);
        copy_record(f->width, record, few_fresh(f));
        f->n_corners = -1;
    } else
        join(f->mean, f->width, record, few_fresh(f));
}

/* The upper hull of the keys there are. Keys come in the order of x, then of y. */
static void few_corners(few *f)
{
    f->n_corners = 0;
    for (int i = 0; i < f->n; i++) {
        const double *key = f->keys + 2 * i;
        if (few_record(f, i)->i < 0)
            continue;
        while (f->n_corners > 0) {
            const double *last = f->keys + 2 * f->corners[f->n_corners - 1];
            if (last[0] < key[0]) {
                if (f->n_corners == 1)
                    break;
                const double *before = f->keys + 2 * f->corners[f->n_corners - 2];
                if (height(before[0], before[1], last[0], last[1], key[0], key[1]) > 0)
                    break;
            }
            f->n_corners--;
        }
        f->corners[f->n_corners++] = i;
    }
    for (int i = 0; i + 1 < f->n_corners; i++) {
        const double *a = f->keys + 2 * f->corners[i], *b = f->keys + 2 * f->corners[i + 1];
        f->edges[i] = (a[1] - b[1]) / (b[0] - a[0]);
    }
}

/* Sign of the score of the corner after i less that of i. */
static int few_step(const few *f, double qx, int i)
{
    const double *a = f->keys + 2 * f->corners[i], *b = f->keys + 2 * f->corners[i + 1];
    return score_change(qx, 1.0, a[0], a[1], b[0], b[1]);
}

/* The record of the corner that wins for (qx, 1); NULL if that is not certain. */
static const cell *few_corner(few *f, double qx)
{
    const double *edges = f->edges;
    double slack = fabs(qx) * SLACK + TINY; /* much more than the error of an edge */
    int at = 0, last = f->n_corners - 1;
    for (int n = last; n > 0;) {
        int half = (n + 1) / 2;
        at += qx > edges[at + half - 1] ? half : 0;
        n -= half;
    }
    if (at > 0 && !(edges[at - 1] < qx - slack) && few_step(f, qx, at - 1) <= 0)
        return NULL;
    if (at < last && !(edges[at] > qx + slack) && few_step(f, qx, at) >= 0)
        return NULL;
    return few_record(f, f->corners[at]);
}

/* Stays as it is until the next insertion; in mode mean only until the next query. */
static const cell *few_query(few *f, status *s, double qx, double qy)
{
    cell *result = few_record(f, f->n + 1);
    const cell *found = few_record(f, f->n);
    int best = -1;
    if (!(fabs(qx) < LIMIT && fabs(qy) < LIMIT))
        fail(s, NOT_FINITE);
    if (qy == 1.0 && f->n > SCANNED && !s->error) {
        if (f->n_corners < 0)
            few_corners(f);
        const cell *corner = few_corner(f, qx);
        if (corner)
            return corner;
    }
    for (int i = 0; i < f->n && !s->error; i++) {
        const double *key = f->keys + 2 * i, *old = f->keys + 2 * best;
        const cell *record = few_record(f, i);
        if (record->i < 0)
            continue;
        int change = best < 0 ? 1 : score_change(qx, qy, old[0], old[1], key[0], key[1]);
        if (change > 0) {
            best = i;
            found = record;
        } else if (change == 0)
            found = merged(f->mean, f->width, found, record, result);
    }
    return found;
}
