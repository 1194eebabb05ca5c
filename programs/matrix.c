/* The inverse of a Hilbert matrix by Gauss-Jordan elimination with pivoting, in double precision,
 * and how far the product is from the identity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX 10

typedef double matrix[MAX][MAX];

/* Replaces `a` by the identity and `b`, the identity, by its inverse. Returns 0 if there is none. */
static int invert(matrix a, matrix b, int n) {
  for (int column = 0; column < n; column++) {
    int pivot = column;
    for (int row = column + 1; row < n; row++) {
      if (fabs(a[row][column]) > fabs(a[pivot][column])) pivot = row;
    }
    if (a[pivot][column] == 0.0) return 0;
    double scale = 1.0 / a[pivot][column];
    for (int k = 0; k < n; k++) {
      double x = a[pivot][k], y = b[pivot][k];
      a[pivot][k] = a[column][k];
      b[pivot][k] = b[column][k];
      a[column][k] = x * scale;
      b[column][k] = y * scale;
    }
    for (int row = 0; row < n; row++) {
      double factor = a[row][column];
      if (row == column || factor == 0.0) continue;
      for (int k = 0; k < n; k++) {
        a[row][k] -= factor * a[column][k];
        b[row][k] -= factor * b[column][k];
      }
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  static matrix original, work, inverse;
  int n = argc > 1 ? atoi(argv[1]) : 3;
  if (n < 1 || n > MAX) {
    fprintf(stderr, "a size from 1 to %d, please\n", MAX);
    return 2;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      original[i][j] = work[i][j] = 1.0 / (i + j + 1);
      inverse[i][j] = i == j;
    }
  }
  if (!invert(work, inverse, n)) {
    fputs("singular\n", stderr);
    return 1;
  }
  double worst = 0.0;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      double sum = i == j ? -1.0 : 0.0;
      for (int k = 0; k < n; k++) sum += original[i][k] * inverse[k][j];
      worst = fmax(worst, fabs(sum));
      printf("%12.4f", inverse[i][j]);
    }
    putchar('\n');
  }
  printf("largest error %.2g\n", worst);
  return 0;
}
