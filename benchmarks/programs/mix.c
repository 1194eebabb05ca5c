/* A loop of everything: a random number generator, a table that is read and written, a call. It runs
   as long as asked and needs no library, so that its prompt is short: steps(n) of one step each. */

static unsigned table[64];

__attribute__((noinline)) static unsigned twist(unsigned x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}

int steps(int n)
{
    unsigned x = 1;
    for (int i = 0; i < 64; i++)
        table[i] = 0;
    for (int i = 0; i < n; i++) {
        x = twist(x);
        table[x & 63] += x % 10;
    }
    return (int)(table[0] + x);
}
