/* N factorial with all its digits, in a big integer that grows on the heap. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BASE 1000000000u /* nine decimal digits a word */

typedef struct {
  uint32_t *words; /* the least first */
  size_t size, room;
} big_t;

static void append(big_t *number, uint32_t word) {
  if (number->size == number->room) {
    number->room = number->room ? 2 * number->room : 4;
    uint32_t *words = realloc(number->words, number->room * sizeof *words);
    if (!words) {
      perror("factorial");
      exit(1);
    }
    number->words = words;
  }
  number->words[number->size++] = word;
}

static void multiply(big_t *number, uint32_t by) {
  uint64_t carry = 0;
  for (size_t i = 0; i < number->size; i++) {
    carry += (uint64_t)number->words[i] * by;
    number->words[i] = (uint32_t)(carry % BASE);
    carry /= BASE;
  }
  if (carry) append(number, (uint32_t)carry);
}

int main(int argc, char **argv) {
  char *end = "";
  long n = argc > 1 ? strtol(argv[1], &end, 10) : 25;
  if (*end || n < 0 || n > 10000) {
    fprintf(stderr, "usage: %s [0 to 10000]\n", argv[0]);
    return 2;
  }
  big_t product = {0};
  append(&product, 1);
  for (long i = 2; i <= n; i++) multiply(&product, (uint32_t)i);
  printf("%ld! = %lu", n, (unsigned long)product.words[product.size - 1]);
  for (size_t i = product.size - 1; i-- > 0;) printf("%09lu", (unsigned long)product.words[i]);
  printf("\n");
  free(product.words);
  return 0;
}
