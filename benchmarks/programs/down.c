/* Calls itself `depth` deep, again and again. */

__attribute__((noinline)) static int down(int depth)
{
    return depth ? down(depth - 1) + 1 : 0;
}

int dive(int depth, int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++)
        sum += down(depth);
    return sum;
}
