/* Calls itself `depth` deep, again and again. What is done on the way back keeps it a call. */

static int met[16];

__attribute__((noinline)) static int down(int depth)
{
    if (!depth)
        return 0;
    int below = down(depth - 1);
    met[depth & 15] += below;
    return below + 1;
}

int dive(int depth, int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++)
        sum += down(depth);
    return sum + met[1];
}
