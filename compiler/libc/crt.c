/* The entry point. For `int main(void)` the compiler defines __main_void itself; otherwise the
 * linker takes the one in args.c from the archive. */
int __main_void(void);

int transputer_main(void) { return __main_void(); }
