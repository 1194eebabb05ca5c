/* A dynamic convex hull: the keys of one head that can still win, with the ties of hullcache.

   An upper chain holds the vertices, where the hull turns strictly, in a treap by x and in a
   linked list; each vertex carries the edge on its right: how steeply it falls, and one merged
   record of the keys strictly inside the edge, which tie only when both its ends do. A lower
   chain is the same with y negated. Insertion and query take O(log n) expected, amortised over
   the vertices that an insertion hides. hullcache/chain.py says why this is enough. */

typedef struct vertex vertex;
struct vertex {
    double x, y, fall;
    vertex *left, *right, *before, *after;
    uint32_t priority;
    int has_inner;
    cell data[]; /* the record, then the record of the edge's inner keys */
};

typedef struct {
    status *status;
    int mean, width;
    size_t vertex_bytes;
    vertex *root, *first, *last, *unused;
    void *blocks; /* each begins with a pointer to the one before */
    uint32_t random;
    int64_t n_vertices;
} chain;

typedef struct {
    status *status;
    int mean, width, downwards; /* downwards: queries may have q_y < 0 */
    int64_t count;
    chain upper, lower;
    double least, greatest;          /* of x */
    cell *total, *leftmost, *rightmost, *scratch, *fresh;
} hull;

enum { BLOCK_VERTICES = 64 };

static cell *inner_of(const chain *c, vertex *v)
{
    return v->data + 1 + c->width;
}

static void chain_clear(chain *c)
{
    while (c->blocks) {
        void *next = *(void **)c->blocks;
        free(c->blocks);
        c->status->bytes -= (int64_t)(sizeof(cell) + BLOCK_VERTICES * c->vertex_bytes);
        c->blocks = next;
    }
    c->root = c->first = c->last = c->unused = NULL;
    c->n_vertices = 0;
}

static void chain_start(chain *c, status *s, int mean, int width)
{
    memset(c, 0, sizeof *c);
    c->status = s;
    c->mean = mean;
    c->width = width;
    c->random = 2463534242u;
    c->vertex_bytes = sizeof(vertex) + 2 * (1 + (size_t)width) * sizeof(cell);
}

/* Make sure that there is an unused vertex. */
static int chain_reserve(chain *c)
{
    if (c->unused)
        return 1;
    char *block = resized(c->status, NULL, 0, sizeof(cell) + BLOCK_VERTICES * c->vertex_bytes);
    if (!block)
        return 0;
    *(void **)block = c->blocks;
    c->blocks = block;
    for (int i = 0; i < BLOCK_VERTICES; i++) {
        vertex *v = (vertex *)(block + sizeof(cell) + (size_t)i * c->vertex_bytes);
        v->after = c->unused;
        c->unused = v;
    }
    return 1;
}

static void treap_insert(chain *c, vertex *v)
{
    vertex **link = &c->root;
    while (*link && (*link)->priority > v->priority)
        link = v->x < (*link)->x ? &(*link)->left : &(*link)->right;
    vertex *rest = *link, **low = &v->left, **high = &v->right;
    *link = v;
    while (rest)
        if (rest->x < v->x) {
            *low = rest;
            low = &rest->right;
            rest = rest->right;
        } else {
            *high = rest;
            high = &rest->left;
            rest = rest->left;
        }
    *low = *high = NULL;
}

static void treap_remove(chain *c, vertex *v)
{
    vertex **link = &c->root;
    while (*link != v)
        link = v->x < (*link)->x ? &(*link)->left : &(*link)->right;
    vertex *a = v->left, *b = v->right;
    while (a && b)
        if (a->priority > b->priority) {
            *link = a;
            link = &a->right;
            a = a->right;
        } else {
            *link = b;
            link = &b->left;
            b = b->left;
        }
    *link = a ? a : b;
}

static void hide(chain *c, vertex *v)
{
    treap_remove(c, v);
    *(v->before ? &v->before->after : &c->first) = v->after;
    *(v->after ? &v->after->before : &c->last) = v->before;
    v->after = c->unused;
    c->unused = v;
    c->n_vertices--;
}

static void set_fall(vertex *v)
{
    v->fall = v->after ? (v->y - v->after->y) / (v->after->x - v->x) : INFINITY;
}

/* Put a vertex between two neighbours (either may be NULL). */
static vertex *place(chain *c, vertex *left, vertex *right, double x, double y, const cell *record)
{
    vertex *v = c->unused;
    c->unused = v->after;
    c->n_vertices++;
    c->random ^= c->random << 13;
    c->random ^= c->random >> 17;
    c->random ^= c->random << 5;
    v->priority = c->random;
    v->x = x;
    v->y = y;
    v->before = left;
    v->after = right;
    v->has_inner = 0;
    *(left ? &left->after : &c->first) = v;
    *(right ? &right->before : &c->last) = v;
    treap_insert(c, v);
    copy_record(c->width, v->data, record);
    if (left)
        set_fall(left);
    set_fall(v);
    return v;
}

/* The record of a hidden vertex that is inside an edge now, with the edge's old inner keys. */
static void make_inner(chain *c, cell *into, vertex *hidden, vertex *edge)
{
    copy_record(c->width, into, hidden->data);
    if (edge->has_inner)
        join(c->mean, c->width, into, inner_of(c, edge));
}

/* Add a key; scratch has room for two records. Call chain_reserve first. */
static void chain_insert(chain *c, double x, double y, const cell *record, cell *scratch)
{
    vertex *left = NULL, *right = NULL, *equal = NULL;
    if (c->last && x > c->last->x)
        left = c->last;
    else
        for (vertex *v = c->root; v;)
            if (v->x < x) {
                left = v;
                v = v->right;
            } else if (v->x > x) {
                right = v;
                v = v->left;
            } else {
                equal = v;
                break;
            }
    if (equal) {
        if (equal->y == y)
            join(c->mean, c->width, equal->data, record);
        if (equal->y >= y)
            return;
        left = equal->before;
        right = equal->after;
        hide(c, equal);
    } else if (left && right) {
        int side = height(left->x, left->y, x, y, right->x, right->y);
        if (side < 0)
            return;
        if (side == 0) {
            if (left->has_inner)
                join(c->mean, c->width, inner_of(c, left), record);
            else
                copy_record(c->width, inner_of(c, left), record);
            left->has_inner = 1;
            return;
        }
    }
    cell *left_inner = NULL, *right_inner = NULL;
    while (left && left->before) {
        vertex *near = left;
        int side = height(near->before->x, near->before->y, near->x, near->y, x, y);
        if (side > 0)
            break;
        left = near->before;
        if (side == 0)
            make_inner(c, left_inner = scratch, near, left);
        hide(c, near);
    }
    while (right && right->after) {
        vertex *near = right;
        int side = height(x, y, near->x, near->y, near->after->x, near->after->y);
        if (side > 0)
            break;
        right = near->after;
        if (side == 0)
            make_inner(c, right_inner = scratch + 1 + c->width, near, near);
        hide(c, near);
    }
    vertex *v = place(c, left, right, x, y, record);
    if (left && (left->has_inner = left_inner != NULL))
        copy_record(c->width, inner_of(c, left), left_inner);
    if ((v->has_inner = right_inner != NULL))
        copy_record(c->width, inner_of(c, v), right_inner);
}

/* All keys with the greatest score, merged; q_y > 0. The chain is not empty.
   The record stays as it is until the next insertion; in mode mean only until the next query. */
static const cell *chain_best(chain *c, double qx, double qy, cell *scratch)
{
    double ratio = qx / qy, slack = fabs(ratio) * SLACK + TINY;
    double low = ratio - slack, high = ratio + slack;
    vertex *winner = c->last;
    int tied = 0;
    for (vertex *v = c->root; v;) {
        int change = -1; /* of the score from v to the next vertex */
        if (v->after && v->fall < low)
            change = 1;
        else if (v->after && !(v->fall > high))
            change = score_change(qx, qy, v->x, v->y, v->after->x, v->after->y);
        if (change > 0)
            v = v->right;
        else {
            winner = v;
            tied = change == 0;
            v = v->left;
        }
    }
    if (!tied)
        return winner->data;
    const cell *found = merged(c->mean, c->width, winner->data, winner->after->data, scratch);
    return winner->has_inner ? merged(c->mean, c->width, found, inner_of(c, winner), scratch) : found;
}

/* Start an empty head; 0 if there is no memory. */
static int hull_start(hull *h, status *s, int mean, int width, int downwards)
{
    memset(h, 0, sizeof *h);
    size_t record = 1 + (size_t)width;
    h->status = s;
    h->mean = mean;
    h->width = width;
    h->downwards = downwards;
    chain_start(&h->upper, s, mean, width);
    chain_start(&h->lower, s, mean, width);
    h->total = resized(s, NULL, 0, 6 * record * sizeof(cell));
    if (!h->total)
        return 0;
    h->leftmost = h->total + record;
    h->rightmost = h->leftmost + record;
    h->scratch = h->rightmost + record;
    h->fresh = h->scratch + 2 * record; /* where a caller puts the record to insert */
    return 1;
}

static void hull_clear(hull *h)
{
    if (!h->status)
        return;
    chain_clear(&h->upper);
    chain_clear(&h->lower);
    if (h->total)
        h->status->bytes -= (int64_t)(6 * (1 + (size_t)h->width) * sizeof(cell));
    free(h->total);
    memset(h, 0, sizeof *h);
}

static void hull_insert(hull *h, double x, double y, const cell *record)
{
    if (!(fabs(x) < LIMIT && fabs(y) < LIMIT)) {
        fail(h->status, NOT_FINITE);
        return;
    }
    if (!chain_reserve(&h->upper) || (h->downwards && !chain_reserve(&h->lower)))
        return;
    if (!h->count++) {
        copy_record(h->width, h->total, record);
        copy_record(h->width, h->leftmost, record);
        copy_record(h->width, h->rightmost, record);
        h->least = h->greatest = x;
    } else {
        join(h->mean, h->width, h->total, record);
        if (x > h->greatest)
            copy_record(h->width, h->rightmost, record);
        else if (x == h->greatest)
            join(h->mean, h->width, h->rightmost, record);
        if (x < h->least)
            copy_record(h->width, h->leftmost, record);
        else if (x == h->least)
            join(h->mean, h->width, h->leftmost, record);
        h->greatest = x > h->greatest ? x : h->greatest;
        h->least = x < h->least ? x : h->least;
    }
    chain_insert(&h->upper, x, y, record, h->scratch);
    if (h->downwards)
        chain_insert(&h->lower, x, -y, record, h->scratch);
}

/* The record of all keys with the greatest score, merged. The head is not empty. */
static const cell *hull_query(hull *h, double qx, double qy)
{
    if (!(fabs(qx) < LIMIT && fabs(qy) < LIMIT)) {
        fail(h->status, NOT_FINITE);
        return h->total;
    }
    if (qy > 0.0)
        return chain_best(&h->upper, qx, qy, h->scratch);
    if (qy < 0.0)
        return chain_best(&h->lower, qx, -qy, h->scratch);
    if (qx == 0.0)
        return h->total;
    return qx > 0.0 ? h->rightmost : h->leftmost;
}
