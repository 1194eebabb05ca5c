/* Heads with keys (2 k, -k^2) for integers k: the latest position of every k.

   Records are in pages of 32 neighbouring keys. A directory finds the page; it covers the keys so
   far, and grows. Each page knows which of its keys are there, and a tree of bitmaps which pages
   are: so queries find the nearest key. The record of k = 0, the key of tokens that write nothing,
   is not in a page and may be behind: then only its position is known, and its values are computed
   when a query asks for them. So it is with values that are computed again from the tokens by
   whoever reads them: they are not in the records of positions from `late_from` on. That keys are
   of this kind is a guess made from the weights, checked at every insertion: at the first other key
   all keys move to a general hull, and the head goes on there. */

enum { PAGE_BITS = 5, PAGE_KEYS = 1 << PAGE_BITS }; /* more waste memory if keys are far apart */
enum { LEVELS = 4 }; /* of bitmaps, 6 bits a level: enough for all pages */

typedef struct {
    uint64_t present; /* which of its keys are there */
    cell records[];   /* position -1: no such key, or the key 0 */
} page;

typedef struct {
    status *status;
    int64_t first, n_pages; /* the directory has the pages of k / 32 = first and so on */
    page **pages;           /* in one block with the bitmaps */
    uint64_t *levels[LEVELS]; /* a bit for each page, a bit for each word of that, and so on */
    page *nothing;            /* the page in the directory where none of its keys is there */
    int64_t stride;           /* cells of a record: position, values */
    int width;
    int has_zero;
    cell *zero;    /* the record of k = 0 */
    cell *fresh;   /* where a caller puts position and values */
    int64_t stale; /* the position of the record of k = 0 if its values are not there, or -1 */
    int64_t late_from; /* INT64_MAX: all values of all records are there */
    void (*refresh)(void *owner, int64_t position, cell *record); /* values that are not late */
    void (*recall)(void *owner, int64_t position, cell *record);  /* those that may be late */
    void *owner;
    int64_t least, greatest;
    int64_t below, above; /* neighbouring keys, if below < above: what the last miss found */
    int general;
    hull hull;
} table;

#define INLINE static inline __attribute__((always_inline)) /* short, and called for most tokens */

static const int64_t MOST_KEY = 94906265; /* its square is below 2^53 */

INLINE cell *record_in(const table *t, page *in, int64_t k)
{
    return in->records + (k & (PAGE_KEYS - 1)) * t->stride;
}

/* The record of an integer k != 0 that is a key; else NULL. Nothing is changed. */
INLINE cell *table_hit(const table *t, int64_t k)
{
    uint64_t i = (uint64_t)((k >> PAGE_BITS) - t->first);
    if (i >= (uint64_t)t->n_pages)
        return NULL;
    cell *record = record_in(t, t->pages[i], k);
    return record[0].i >= 0 ? record : NULL;
}

/* The record of k = 0. */
static inline cell *zero_record(table *t)
{
    if (t->stale >= 0) {
        t->refresh(t->owner, t->stale, t->zero);
        t->stale = -1;
    }
    return t->zero;
}

static size_t page_bytes(const table *t)
{
    return sizeof(page) + PAGE_KEYS * (size_t)t->stride * sizeof(cell);
}

/* Words of a level of bitmaps for n pages. */
static int64_t words_of(int64_t n, int level)
{
    for (; level >= 0; level--)
        n = (n + 63) >> 6;
    return n;
}

/* Bytes of the directory with its bitmaps. */
static size_t directory_bytes(int64_t n)
{
    int64_t words = n;
    for (int level = 0; n && level < LEVELS; level++)
        words += words_of(n, level);
    return (size_t)words * sizeof(uint64_t);
}

/* Note in the bitmaps that a page is there. */
static void mark_page(table *t, int64_t i)
{
    for (int level = 0; level < LEVELS; level++, i >>= 6)
        t->levels[level][i >> 6] |= (uint64_t)1 << (i & 63);
}

/* Let the directory cover a page too: it becomes twice as long, or more. 0 if there is no memory. */
static int table_cover(table *t, int64_t number)
{
    const int64_t n_old = t->n_pages;
    int64_t first = n_old ? t->first : number, end = first + n_old;
    if (number < first)
        first = number < end - 2 * n_old ? number : end - 2 * n_old;
    else
        end = number >= first + 2 * n_old ? number + 1 : first + 2 * n_old;
    int64_t n = end - first;
    page **pages = resized(t->status, NULL, 0, directory_bytes(n));
    if (!pages)
        return 0;
    page **old = t->pages;
    uint64_t *words = (uint64_t *)(pages + n);
    memset(words, 0, directory_bytes(n) - (size_t)n * sizeof *pages);
    for (int level = 0; level < LEVELS; words += words_of(n, level++))
        t->levels[level] = words;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i + first - t->first;
        pages[i] = at >= 0 && at < n_old ? old[at] : t->nothing;
        if (pages[i] != t->nothing)
            mark_page(t, i);
    }
    t->pages = pages;
    t->first = first;
    t->n_pages = n;
    t->status->bytes -= (int64_t)directory_bytes(n_old);
    free(old);
    return 1;
}

/* The page of a key, which is there then; NULL if there is no memory. */
static page *page_of(table *t, int64_t k)
{
    int64_t i = (k >> PAGE_BITS) - t->first;
    if ((uint64_t)i >= (uint64_t)t->n_pages) {
        if (!table_cover(t, k >> PAGE_BITS))
            return NULL;
        i = (k >> PAGE_BITS) - t->first;
    }
    if (t->pages[i] == t->nothing) {
        page *new = resized(t->status, NULL, 0, page_bytes(t));
        if (!new)
            return NULL;
        memcpy(new, t->nothing, page_bytes(t));
        t->pages[i] = new;
        mark_page(t, i);
    }
    return t->pages[i];
}

/* table_put for the key 0, and for one that is new. */
static cell *table_make(table *t, int64_t k)
{
    if (k || !t->has_zero) {
        page *its = page_of(t, k);
        if (!its)
            return NULL;
        its->present |= (uint64_t)1 << (k & (PAGE_KEYS - 1));
        if (k < t->least)
            t->least = k;
        if (k > t->greatest)
            t->greatest = k;
        if (t->below < k && k < t->above)
            t->below = t->above = 0;
        if (k)
            return record_in(t, its, k);
        t->has_zero = 1;
    }
    t->stale = -1;
    return t->zero;
}

/* Let an integer k up to MOST_KEY be a key of a table that is no general hull. Its record, in which
   the caller puts position and values; NULL if there is no memory. */
INLINE cell *table_put(table *t, int64_t k)
{
    cell *record = table_hit(t, k);
    return __builtin_expect(record != NULL, 1) ? record : table_make(t, k);
}

static int table_start(table *t, status *s, int width)
{
    memset(t, 0, sizeof *t);
    t->status = s;
    t->width = width;
    t->stride = 1 + width;
    t->stale = -1;
    t->late_from = INT64_MAX;
    t->least = INT64_MAX;
    t->greatest = INT64_MIN;
    t->zero = resized(s, NULL, 0, 2 * (size_t)t->stride * sizeof(cell));
    t->nothing = resized(s, NULL, 0, page_bytes(t));
    if (!t->zero || !t->nothing)
        return 0;
    t->fresh = t->zero + t->stride;
    t->nothing->present = 0;
    for (int k = 0; k < PAGE_KEYS; k++)
        record_in(t, t->nothing, k)[0].i = -1;
    return 1;
}

static void table_drop_pages(table *t)
{
    for (int64_t i = 0; i < t->n_pages; i++)
        if (t->pages[i] != t->nothing) {
            t->status->bytes -= (int64_t)page_bytes(t);
            free(t->pages[i]);
        }
    t->status->bytes -= (int64_t)directory_bytes(t->n_pages);
    free(t->pages);
    t->pages = NULL;
    t->n_pages = 0;
}

static void table_clear(table *t)
{
    if (!t->status)
        return;
    table_drop_pages(t);
    if (t->zero)
        t->status->bytes -= (int64_t)(2 * (size_t)t->stride * sizeof(cell));
    if (t->nothing)
        t->status->bytes -= (int64_t)page_bytes(t);
    free(t->zero);
    free(t->nothing);
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
        settle_record(t, t->zero);
    for (int64_t i = 0; i < t->n_pages; i++)
        for (int k = 0; k < PAGE_KEYS && t->pages[i] != t->nothing; k++)
            settle_record(t, record_in(t, t->pages[i], k));
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
    for (int64_t k = t->first * PAGE_KEYS; k <= t->greatest && !t->status->error; k++) {
        const cell *record = table_hit(t, k);
        if (record)
            hull_insert(&t->hull, 2.0 * (double)k, -(double)k * (double)k, record);
    }
    table_drop_pages(t);
    t->general = 1;
}

/* A key that is not as guessed, or comes after one. */
static void table_insert_odd(table *t, double x, double y)
{
    if (!t->general)
        table_generalise(t);
    if (!t->status->error)
        hull_insert(&t->hull, x, y, t->fresh);
}

/* Add the key (x, y) with the record in t->fresh. */
static inline void table_insert(table *t, double x, double y)
{
    double half = 0.5 * x;
    if (fabs(half) <= (double)MOST_KEY && !t->general) {
        int64_t k = (int64_t)half;
        if (half == (double)k && y == -half * half) {
            cell *record = table_put(t, k);
            for (int64_t i = 0; record && i < t->stride; i++)
                record[i] = t->fresh[i];
            return;
        }
    }
    table_insert_odd(t, x, y);
}

/* A word of the bitmaps; at level 0 are the keys of a page. */
static inline uint64_t word_of(const table *t, int level, int64_t i)
{
    return level ? t->levels[level - 1][i] : t->pages[i]->present;
}

/* The greatest bit (direction -1) or the least one (+1). */
static inline int last_of(uint64_t bits, int direction)
{
    return direction < 0 ? 63 - __builtin_clzll(bits) : __builtin_ctzll(bits);
}

/* The greatest key up to k (direction -1) or the least from k on (+1); there is one. */
static int64_t nearest_key(const table *t, int64_t k, int direction)
{
    int64_t number = k - t->first * PAGE_KEYS;
    int level = 0;
    for (;; level++) {
        int width = level ? 6 : PAGE_BITS, at = (int)(number & ((1 << width) - 1));
        uint64_t bits = word_of(t, level, number >> width);
        bits &= direction < 0 ? ~(uint64_t)0 >> (63 - at) : ~(uint64_t)0 << at;
        if (bits) {
            number += last_of(bits, direction) - at;
            break;
        }
        number = (number >> width) + direction; /* the neighbour, whose word is elsewhere */
    }
    for (; level > 0; level--) {
        uint64_t bits = word_of(t, level - 1, number);
        number = (number << (level > 1 ? 6 : PAGE_BITS)) + last_of(bits, direction);
    }
    return number + t->first * PAGE_KEYS;
}

/* The record of a key. */
static const cell *table_record(table *t, int64_t k)
{
    return k ? table_hit(t, k) : zero_record(t);
}

/* table_query where no page has a record of e: e is 0 or no key. */
static const cell *table_query_rare(table *t, double e)
{
    if (t->general)
        return hull_query(&t->hull, e, 1.0);
    if (e == 0.0 && t->has_zero)
        return zero_record(t);
    if (!(fabs(e) < LIMIT)) {
        fail(t->status, NOT_FINITE);
        return table_record(t, t->least);
    }
    if (e <= (double)t->least)
        return table_record(t, t->least);
    if (e >= (double)t->greatest)
        return table_record(t, t->greatest);
    if (!(e > (double)t->below && e < (double)t->above)) {
        int64_t k = (int64_t)floor(e);
        t->below = nearest_key(t, k, -1);
        t->above = nearest_key(t, k + 1, 1);
    }
    const cell *one = table_record(t, t->below), *other = table_record(t, t->above);
    double twice = 2.0 * e, sum = (double)(t->below + t->above);
    if (twice == sum)
        return one[0].i > other[0].i ? one : other;
    return twice < sum ? one : other;
}

/* The record of the key with the greatest score for (e, 1), the latest of a tie. */
static inline const cell *table_query(table *t, double e)
{
    if (fabs(e) <= (double)MOST_KEY) {
        int64_t k = (int64_t)e;
        const cell *record = e == (double)k ? table_hit(t, k) : NULL;
        if (record)
            return record;
    }
    return table_query_rare(t, e);
}

/* The same for an integer. */
INLINE const cell *table_at(table *t, int64_t k)
{
    const cell *record = table_hit(t, k);
    return __builtin_expect(record != NULL, 1) ? record : table_query_rare(t, (double)k);
}

/* The record of k for one that `table_hit` does not find. */
static __attribute__((noinline)) const cell *table_missed(table *t, int64_t k)
{
    return table_query(t, (double)k);
}

/* The record of k = 0, to be filled: it is there, in a table whose keys are all as guessed. */
INLINE cell *table_zero(table *t)
{
    t->stale = -1;
    return t->zero;
}

/* The same, with values that are computed when they are needed. */
INLINE void table_zero_later(table *t, int64_t position)
{
    t->stale = position;
}
