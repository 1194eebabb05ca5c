/* Reads and writes random bytes of a table of `size` bytes, a power of two up to 32 MiB. */

static unsigned char bytes[1 << 25];

int touch(int size, int n)
{
    unsigned x = 1, sum = 0;
    for (int i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        unsigned at = (x >> 7) & (size - 1);
        sum += bytes[at];
        bytes[at] = (unsigned char)x;
    }
    return (int)sum;
}
