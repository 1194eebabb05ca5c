/* Append n tokens, given ones or, if there are none, the first and what follows, until one with
   stop[token]. What follows each goes to next, unless it is NULL. Returns how many. */
static int64_t append(engine *e, const int32_t *given, int32_t token, const uint8_t *stop,
                      int64_t n, int32_t *next)
{
    for (int64_t i = 0; i < n; i++) {
        token = step(e, given ? given[i] : token);
        if (token < 0)
            return i;
        if (!next)
            continue;
        next[i] = token;
        if (stop && stop[token])
            return i + 1;
    }
    return n;
}
