/* Fibonacci numbers by two calls each: nothing but calls. */

int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
