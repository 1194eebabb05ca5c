/* Counts the primes below n (at most 65,536) with the sieve of Eratosthenes. */

static unsigned char composite[65536];

int primes(int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        composite[i] = 0;
    for (int i = 2; i < n; i++) {
        if (composite[i])
            continue;
        count++;
        for (int k = 2 * i; k < n; k += i)
            composite[k] = 1;
    }
    return count;
}
