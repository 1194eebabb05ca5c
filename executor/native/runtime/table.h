/* Heads with keys (2 k, -k^2) for integers k: the latest position of every k.

   An array for small k as long as it is not too empty, a hash table for others, and, once a query
   has missed, a tree of bitmaps for the nearest ones. The record of k = 0, the key of tokens that
   write nothing, may be behind: then only its position is known, and its values are computed when
   a query asks for them. So it is with values that are computed again from the tokens by whoever
   reads them: they are not in the records of positions from `late_from` on. That keys are of this
   kind is a guess made from the weights, checked at every insertion: at the first other key all
   keys move to a general hull, and the head goes on there. */

typedef struct {
    int64_t k; /* level and number of the word */
    uint64_t bits;
} word;

enum { LEVELS = 5, OFFSET = 1 << 27 }; /* 6 bits a level: 0 < k + 2^27 < 2^30 */

typedef struct {
    word *words;
    size_t size, used;
    int built;
} order;

typedef struct {
    status *status;
    int width, stride; /* cells of an entry: k, position, values */
    cell *entries;     /* position -1: empty */
    size_t size, used; /* used counts those of the array as well */
    cell *dense;       /* records of 0 < k < n_dense, position -1: empty */
    int64_t n_dense;
    int has_zero;
    cell *zero;  /* the entry of k = 0, which is that of tokens that write nothing */
    cell *fresh; /* where a caller puts position and values */
    int64_t stale; /* the position of the record of k = 0 if its values are not there, or -1 */
    int64_t late_from; /* INT64_MAX: all values of all records are there */
    void (*refresh)(void *owner, int64_t position, cell *record); /* all values */
    void (*recall)(void *owner, int64_t position, cell *record);  /* those that may be late */
    void *owner;
    int64_t least, greatest;
    int64_t below, above; /* neighbouring keys, if below < above: what the last miss found */
    order order;
    int general;
    hull hull;
} table;

static const int64_t MOST_KEY = 94906265; /* its square is below 2^53 */

/* Where to look for k first. Only k / 8 is hashed, so that neighbouring keys share cache lines. */
static inline size_t hash_of(int64_t k, size_t size)
{
    uint64_t mixed = (uint64_t)(k >> 3) * 0x9e3779b97f4a7c15u;
    return ((size_t)(mixed >> 32) << 3 | (size_t)((k ^ (int64_t)(mixed >> 29)) & 7)) & (size - 1);
}

/* Where to look after n tries: in the same place of the next eight, in the end everywhere. */
static inline size_t next_of(size_t i, int n, size_t size)
{
    return (i + (n < 8 ? 8 : 9)) & (size - 1);
}

static inline cell *entry_of(const table *t, int64_t k)
{
    size_t i = hash_of(k, t->size);
    for (int n = 0;; i = next_of(i, n++, t->size)) {
        cell *entry = t->entries + i * (size_t)t->stride;
        if (entry[1].i < 0 || entry[0].i == k)
            return entry;
    }
}

/* The record of k = 0. */
static inline cell *zero_record(table *t)
{
    if (t->stale >= 0) {
        t->refresh(t->owner, t->stale, t->zero + 1);
        t->stale = -1;
    }
    return t->zero + 1;
}

/* The record of k != 0; its position is negative if there is none. */
static inline cell *record_of(const table *t, int64_t k)
{
    if ((uint64_t)k < (uint64_t)t->n_dense)
        return t->dense + k * (t->stride - 1);
    return entry_of(t, k) + 1;
}

static word *word_of(const order *o, int64_t k)
{
    size_t i = hash_of(k, o->size);
    for (int n = 0;; i = next_of(i, n++, o->size))
        if (!o->words[i].bits || o->words[i].k == k)
            return o->words + i;
}

static int64_t word_key(int level, int64_t number)
{
    return number * 16 + level;
}

static int order_grow(status *s, order *o)
{
    order bigger = {0};
    bigger.size = o->size ? 2 * o->size : 64;
    bigger.words = resized(s, NULL, 0, bigger.size * sizeof(word));
    if (!bigger.words)
        return 0;
    memset(bigger.words, 0, bigger.size * sizeof(word));
    for (size_t i = 0; i < o->size; i++)
        if (o->words[i].bits)
            *word_of(&bigger, o->words[i].k) = o->words[i];
    s->bytes -= (int64_t)(o->size * sizeof(word));
    free(o->words);
    o->words = bigger.words;
    o->size = bigger.size;
    return 1;
}

static int order_insert(status *s, order *o, int64_t k)
{
    int64_t number = k + OFFSET;
    for (int level = 0; level < LEVELS; level++, number >>= 6) {
        if (2 * (o->used + 1) > o->size && !order_grow(s, o))
            return 0;
        word *w = word_of(o, word_key(level, number >> 6));
        int known = w->bits != 0;
        w->k = word_key(level, number >> 6);
        w->bits |= (uint64_t)1 << (number & 63);
        o->used += !known;
        if (known)
            return 1;
    }
    return 1;
}

/* The greatest key up to k (direction -1) or the least from k on (+1); there is one. */
static int64_t order_seek(const order *o, int64_t k, int direction)
{
    int64_t number = k + OFFSET;
    int level = 0;
    for (;; level++) {
        uint64_t bits = word_of(o, word_key(level, number >> 6))->bits;
        int at = number & 63;
        bits &= direction < 0 ? ~(uint64_t)0 >> (63 - at) : ~(uint64_t)0 << at;
        if (bits) {
            int bit = direction < 0 ? 63 - __builtin_clzll(bits) : __builtin_ctzll(bits);
            number = (number & ~(int64_t)63) | bit;
            break;
        }
        number = (number >> 6) + direction; /* the neighbour, whose word is elsewhere */
    }
    for (; level > 0; level--) {
        uint64_t bits = word_of(o, word_key(level - 1, number))->bits;
        number = number * 64 + (direction < 0 ? 63 - __builtin_clzll(bits) : __builtin_ctzll(bits));
    }
    return number - OFFSET;
}

static int table_grow(table *t)
{
    table bigger = *t;
    bigger.size = t->size ? 2 * t->size : 64;
    size_t bytes = bigger.size * (size_t)t->stride * sizeof(cell);
    bigger.entries = resized(t->status, NULL, 0, bytes);
    if (!bigger.entries)
        return 0;
    for (size_t i = 0; i < bigger.size; i++)
        bigger.entries[i * (size_t)t->stride + 1].i = -1;
    for (size_t i = 0; i < t->size; i++) {
        cell *entry = t->entries + i * (size_t)t->stride;
        if (entry[1].i >= 0)
            memcpy(entry_of(&bigger, entry[0].i), entry, (size_t)t->stride * sizeof(cell));
    }
    t->status->bytes -= (int64_t)(t->size * (size_t)t->stride * sizeof(cell));
    free(t->entries);
    t->entries = bigger.entries;
    t->size = bigger.size;
    return 1;
}

/* Let the array hold k too, if it would not be too empty. */
static int table_widen(table *t, int64_t k)
{
    if (k <= 0 || k < t->n_dense || k >= 16 * ((int64_t)t->used + 16))
        return 1;
    int64_t n = 64;
    while (n <= k)
        n *= 2;
    size_t cells = (size_t)(t->stride - 1), bytes = cells * sizeof(cell);
    cell *dense = resized(t->status, t->dense, (size_t)t->n_dense * bytes, (size_t)n * bytes);
    if (!dense)
        return 0;
    for (int64_t i = t->n_dense; i < n; i++)
        dense[(size_t)i * cells].i = -1;
    t->dense = dense;
    cell *old = t->entries;
    t->entries = resized(t->status, NULL, 0, t->size * (size_t)t->stride * sizeof(cell));
    if (!t->entries) {
        t->entries = old;
        return 0;
    }
    t->n_dense = n;
    for (size_t i = 0; i < t->size; i++)
        t->entries[i * (size_t)t->stride + 1].i = -1;
    for (size_t i = 0; i < t->size; i++) {
        cell *entry = old + i * (size_t)t->stride;
        if (entry[1].i < 0)
            continue;
        if (entry[0].i > 0 && entry[0].i < n)
            memcpy(dense + (size_t)entry[0].i * cells, entry + 1, bytes);
        else
            memcpy(entry_of(t, entry[0].i), entry, (size_t)t->stride * sizeof(cell));
    }
    t->status->bytes -= (int64_t)(t->size * (size_t)t->stride * sizeof(cell));
    free(old);
    return 1;
}

static int table_start(table *t, status *s, int width)
{
    memset(t, 0, sizeof *t);
    t->status = s;
    t->width = width;
    t->stride = 2 + width;
    t->stale = -1;
    t->late_from = INT64_MAX;
    t->least = INT64_MAX;
    t->greatest = INT64_MIN;
    t->zero = resized(s, NULL, 0, 2 * (size_t)t->stride * sizeof(cell));
    if (!t->zero)
        return 0;
    t->zero[0].i = 0;
    t->fresh = t->zero + t->stride;
    return table_grow(t);
}

static void table_drop_entries(table *t)
{
    t->status->bytes -= (int64_t)(t->size * (size_t)t->stride * sizeof(cell));
    t->status->bytes -= (int64_t)(t->order.size * sizeof(word));
    t->status->bytes -= t->n_dense * (t->stride - 1) * (int64_t)sizeof(cell);
    free(t->entries);
    free(t->dense);
    free(t->order.words);
    t->entries = t->dense = NULL;
    t->n_dense = 0;
    t->order.words = NULL;
    t->size = t->order.size = 0;
}

static void table_clear(table *t)
{
    if (!t->status)
        return;
    table_drop_entries(t);
    if (t->zero)
        t->status->bytes -= (int64_t)(2 * (size_t)t->stride * sizeof(cell));
    free(t->zero);
    hull_clear(&t->hull);
    memset(t, 0, sizeof *t);
}

/* Compute what was left for later: something it depends on may change now. */
static inline void table_settle(table *t)
{
    if (t->stale >= 0)
        zero_record(t);
}

static void settle_record(table *t, cell *record)
{
    if (record[0].i >= t->late_from)
        t->recall(t->owner, record[0].i, record);
}

/* The same for all records; those from a position on may be late again. */
static void table_settle_all(table *t, int64_t position)
{
    table_settle(t);
    if (t->late_from == INT64_MAX)
        return;
    if (t->has_zero)
        settle_record(t, t->zero + 1);
    for (int64_t k = 1; k < t->n_dense; k++)
        settle_record(t, record_of(t, k));
    for (size_t i = 0; i < t->size; i++)
        settle_record(t, t->entries + i * (size_t)t->stride + 1);
    t->late_from = position;
}

/* Move all keys to a general hull; the order of insertion does not matter to it. */
static void table_generalise(table *t)
{
    if (!hull_start(&t->hull, t->status, 0, t->width, 0))
        return;
    t->status->odd = 1;
    settle_record(t, t->fresh);
    table_settle_all(t, INT64_MAX);
    if (t->has_zero)
        hull_insert(&t->hull, 0.0, 0.0, zero_record(t));
    for (int64_t k = 1; k < t->n_dense && !t->status->error; k++) {
        cell *record = record_of(t, k);
        if (record[0].i >= 0)
            hull_insert(&t->hull, 2.0 * (double)k, -(double)k * (double)k, record);
    }
    for (size_t i = 0; i < t->size && !t->status->error; i++) {
        cell *entry = t->entries + i * (size_t)t->stride;
        double k = (double)entry[0].i;
        if (entry[1].i >= 0)
            hull_insert(&t->hull, 2.0 * k, -k * k, entry + 1);
    }
    table_drop_entries(t);
    t->general = 1;
}

static void table_insert_rare(table *t, double x, double y)
{
    if (!t->general) {
        double half = 0.5 * x;
        if (fabs(half) <= (double)MOST_KEY && half == (double)(int64_t)half && y == -half * half) {
            int64_t k = (int64_t)half;
            if (k < t->least)
                t->least = k;
            if (k > t->greatest)
                t->greatest = k;
            if (t->below < k && k < t->above)
                t->below = t->above = 0;
            if (t->order.built && !order_insert(t->status, &t->order, k))
                return;
            if (k == 0) {
                t->has_zero = 1;
                t->stale = -1;
                copy_record(t->width, t->zero + 1, t->fresh);
                return;
            }
            if (!table_widen(t, k) || (2 * (t->used + 1) > t->size && !table_grow(t)))
                return;
            cell *record = record_of(t, k);
            if ((uint64_t)k >= (uint64_t)t->n_dense)
                record[-1].i = k;
            copy_record(t->width, record, t->fresh);
            t->used++;
            return;
        }
        table_generalise(t);
    }
    if (!t->status->error)
        hull_insert(&t->hull, x, y, t->fresh);
}

/* Add the key (x, y) with the record in t->fresh. */
static inline void table_insert(table *t, double x, double y)
{
    double half = 0.5 * x;
    if (!t->general && half >= (double)t->least && half <= (double)t->greatest) {
        int64_t k = (int64_t)half;
        if (half == (double)k && y == -half * half) {
            cell *record = k ? record_of(t, k) : t->zero + 1;
            if (k ? record[0].i >= 0 : t->has_zero) {
                for (int i = 0; i <= t->width; i++)
                    record[i] = t->fresh[i];
                if (!k)
                    t->stale = -1;
                return;
            }
        }
    }
    table_insert_rare(t, x, y);
}

static const cell *table_record(table *t, int64_t k)
{
    return k ? record_of(t, k) : zero_record(t);
}

/* Find the neighbours of e, which is no key and lies between keys. 0 if there is no memory. */
static int table_seek(table *t, double e)
{
    if (!t->order.built) {
        t->order.built = 1;
        if (t->has_zero)
            order_insert(t->status, &t->order, 0);
        for (int64_t k = 1; k < t->n_dense; k++)
            if (record_of(t, k)[0].i >= 0)
                order_insert(t->status, &t->order, k);
        for (size_t i = 0; i < t->size; i++)
            if (t->entries[i * (size_t)t->stride + 1].i >= 0)
                order_insert(t->status, &t->order, t->entries[i * (size_t)t->stride].i);
        if (t->status->error)
            return 0;
    }
    double floor_of_e = floor(e);
    t->below = order_seek(&t->order, (int64_t)floor_of_e, -1);
    t->above = order_seek(&t->order, (int64_t)floor_of_e + (floor_of_e < e), 1);
    return 1;
}

static const cell *table_query_rare(table *t, double e)
{
    if (t->general)
        return hull_query(&t->hull, e, 1.0);
    if (!(fabs(e) < LIMIT)) {
        fail(t->status, NOT_FINITE);
        return table_record(t, t->least);
    }
    if (e <= (double)t->least)
        return table_record(t, t->least);
    if (e >= (double)t->greatest)
        return table_record(t, t->greatest);
    if (!(e > (double)t->below && e < (double)t->above) && !table_seek(t, e))
        return table_record(t, t->least);
    const cell *one = table_record(t, t->below), *other = table_record(t, t->above);
    double twice = 2.0 * e, sum = (double)(t->below + t->above);
    if (twice == sum)
        return one[0].i > other[0].i ? one : other;
    return twice < sum ? one : other;
}

/* The record of the key with the greatest score for (e, 1), the latest of a tie. */
static inline const cell *table_query(table *t, double e)
{
    if (!t->general && e >= (double)t->least && e <= (double)t->greatest) {
        int64_t k = (int64_t)e;
        if (e == (double)k) {
            if (k == 0 && t->has_zero)
                return zero_record(t);
            const cell *record = record_of(t, k);
            if (k && record[0].i >= 0)
                return record;
        }
    }
    return table_query_rare(t, e);
}

/* The record of an integer k != 0 that is a key; else NULL. Nothing is changed. */
static inline cell *table_hit(const table *t, int64_t k)
{
    cell *record;
    if ((uint64_t)k < (uint64_t)t->n_dense) {
        if (k == 0)
            return NULL;
        record = t->dense + k * (t->stride - 1);
    } else {
        if (k == 0 || !t->size)
            return NULL;
        record = entry_of(t, k) + 1;
    }
    return record[0].i >= 0 ? record : NULL;
}

/* The same as table_query for an integer. */
static inline const cell *table_at(table *t, int64_t k)
{
    const cell *record = table_hit(t, k);
    return __builtin_expect(record != NULL, 1) ? record : table_query(t, (double)k);
}

/* The record of k = 0, to be filled: it is there, in a table whose keys are all as guessed. */
static inline cell *table_zero(table *t)
{
    t->stale = -1;
    return t->zero + 1;
}

/* The same, with values that are computed when they are needed. */
static inline void table_zero_later(table *t, int64_t position)
{
    t->stale = position;
}
