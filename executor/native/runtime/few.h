/* Heads whose keys take few distinct values, each a function of the token: one record a value. */

typedef struct {
    const double *keys; /* n pairs */
    int n, mean, width;
    cell *records; /* n, then one to insert and one for results; weight -1: no such key yet */
} few;

static cell *few_record(const few *f, int i)
{
    return f->records + (size_t)i * (1 + (size_t)f->width);
}

static int few_start(few *f, status *s, int mean, int width, const double *keys, int n)
{
    size_t bytes = ((size_t)n + 2) * (1 + (size_t)width) * sizeof(cell);
    *f = (few){keys, n, mean, width, resized(s, NULL, 0, bytes)};
    if (!f->records)
        return 0;
    for (int i = 0; i < n; i++)
        few_record(f, i)->i = -1;
    return 1;
}

static cell *few_fresh(const few *f)
{
    return few_record(f, f->n);
}

static void few_insert(few *f, int key)
{
    cell *record = few_record(f, key);
    if (record->i < 0)
        copy_record(f->width, record, few_fresh(f));
    else
        join(f->mean, f->width, record, few_fresh(f));
}

static const cell *few_query(few *f, status *s, double qx, double qy)
{
    cell *result = few_record(f, f->n + 1);
    int best = -1;
    if (!(fabs(qx) < LIMIT && fabs(qy) < LIMIT))
        fail(s, NOT_FINITE);
    for (int i = 0; i < f->n && !s->error; i++) {
        const double *key = f->keys + 2 * i, *old = f->keys + 2 * best;
        if (few_record(f, i)->i < 0)
            continue;
        int change = best < 0 ? 1 : score_change(qx, qy, old[0], old[1], key[0], key[1]);
        if (change > 0) {
            best = i;
            copy_record(f->width, result, few_record(f, i));
        } else if (change == 0)
            join(f->mean, f->width, result, few_record(f, i));
    }
    return best < 0 ? few_record(f, f->n) : result;
}
