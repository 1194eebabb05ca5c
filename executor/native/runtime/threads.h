/* Append n tokens, given ones or, if there are none, the first and what follows, until one with
   stop[token]. What follows each goes to next, unless it is NULL. Returns how many.

   The loop is in the paths: each ends with the next token and goes on to the path of that. */
static int64_t append(engine *e, const int32_t *given, int32_t token, const uint8_t *stop,
                      int64_t n_tokens, int32_t *next)
{
    const int64_t start = e->core.length, end = start + n_tokens;
    /* next as an array by positions */
    int32_t *const following = (int32_t *)((uintptr_t)next - (uintptr_t)start * sizeof *next);
    int64_t p = start; /* the position of `token` */
    int64_t limit = 0; /* up to which position one path may lead on to another */
    int64_t chain = 0; /* the same, if the next token fetches at `place` as well; or 0 */
    int64_t place = 0;
    int loud = 0; /* whether one of the tokens that traces go through may stop */
    uint32_t fetched = 0;
    /* SUMS */
    if (!stop)
        stop = never;
    /* LOUD */
top:
    e->core.length = p;
    if (p >= end)
        goto done;
    if (given)
        token = given[p - start];
    if (!((e->ready || make_ready(e, p)) && p < e->core.room && !e->core.status.odd))
        goto plain;
    /* HOLD */
    limit = given || loud ? 0 : end < e->core.room ? end : e->core.room;
    e->core.tokens[p] = (token_t)token;
    /* PATHS */
passed: /* what follows does not matter */
    p++;
    goto top;
check:
    if (!stop[token])
        goto top;
done:
failed:
    /* LEAVE */
    e->core.length = p;
    return p - start;
again: /* what was done may be done twice, but for the sums */
    /* RESTORE */
plain:
    /* LEAVE */
    e->core.length = p;
    token = step(e, token);
    if (token < 0)
        return p - start;
    if (!next)
        goto passed;
    next[p++ - start] = token;
    goto check;
}
