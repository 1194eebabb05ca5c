/* The functions that Python calls. `append` is above. */

/* A new empty engine; NULL if there is no memory. */
engine *native_new(const void *const *tables, int64_t limit)
{
    engine *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->core.limit = limit < MOST_TOKENS ? limit : MOST_TOKENS;
    e->core.status.bytes = sizeof *e;
    if (!engine_start(e, tables)) {
        engine_clear(e);
        free(e);
        return NULL;
    }
    return e;
}

void native_free(engine *e)
{
    engine_clear(e);
    free(e->core.tokens);
    free(e);
}

/* Append n tokens; what would follow each goes to next, unless it is NULL. Returns how many. */
int64_t native_read(engine *e, const int32_t *tokens, int64_t n, int32_t *next)
{
    return append(e, tokens, 0, NULL, n, next);
}

/* Append a token and what follows, until a token with stop[token] or limit of them. */
int64_t native_extend(engine *e, int32_t token, const uint8_t *stop, int64_t limit, int32_t *next)
{
    return append(e, NULL, token, stop, limit, next);
}

/* Copy n tokens from a position on. */
void native_tokens(const engine *e, int64_t from, int64_t n, int32_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (int32_t)e->core.tokens[from + i];
}

/* From now on scans answer, where the engine was generated with scans. */
void native_scan(engine *e)
{
    e->core.status.scanning = 1;
}

int native_error(const engine *e)
{
    return e->core.status.error;
}

int64_t native_length(const engine *e)
{
    return e->core.length;
}

int64_t native_bytes(const engine *e)
{
    return e->core.status.bytes;
}
