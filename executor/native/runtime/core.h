/* What every generated engine has, whatever the model: the tokens so far, and room for more. */

enum { MOST_TOKENS = 1 << 26 }; /* sums of a few p^2 are exact up to here */

typedef struct {
    status status;
    int64_t length, room, limit;
    token_t *tokens;
} core;

/* The number to use for a token `back` positions before i; position 0 where there is none. */
static inline int64_t before(int64_t i, int64_t back)
{
    return i > back ? i - back : 0;
}

/* Room for one more token and its columns (n arrays of doubles). 0 if there is none. */
static int make_room(core *c, double **columns, int n)
{
    if (c->length < c->room)
        return 1;
    int64_t room = c->room + c->room / 4 + 4096;
    room = room > c->limit ? c->limit : room;
    if (c->length >= room) {
        fail(&c->status, TOO_LONG);
        return 0;
    }
    size_t old = (size_t)c->room, new = (size_t)room;
    token_t *tokens = realloc(c->tokens, new * sizeof *tokens);
    if (tokens)
        c->tokens = tokens;
    int complete = tokens != NULL;
    for (int i = 0; i < n && complete; i++) {
        double *column = realloc(columns[i], new * sizeof *column);
        if (column)
            columns[i] = column;
        complete = column != NULL;
    }
    if (!complete) {
        fail(&c->status, OUT_OF_MEMORY);
        return 0;
    }
    c->status.bytes += (int64_t)((new - old) * (sizeof *tokens + (size_t)n * sizeof(double)));
    c->room = room;
    return 1;
}
