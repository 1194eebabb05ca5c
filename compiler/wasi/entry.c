/* The entry of a program with `main`: constructors, main, and what atexit and stdio have to do at
 * the end. The result is the exit code. For `int main(void)` the compiler defines __main_void;
 * for `int main(int, char **)` it is the one in arguments.c. */
void __wasm_call_ctors(void);
int __main_void(void);
void __wasm_call_dtors(void);

int transputer_main(void) {
  __wasm_call_ctors();
  int code = __main_void();
  __wasm_call_dtors();
  return code;
}
