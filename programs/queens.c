/* All ways to place N queens on a board of N by N; the first is shown. */
#include <stdio.h>
#include <stdlib.h>

#define MAX 12

static int n, count, queen[MAX];
static int column_used[MAX], rising_used[2 * MAX], falling_used[2 * MAX];

static void show(void) {
  for (int row = 0; row < n; row++) {
    for (int column = 0; column < n; column++) {
      printf("%s%c", column ? " " : "", queen[row] == column ? 'Q' : '.');
    }
    printf("\n");
  }
}

static void place(int row) {
  if (row == n) {
    if (count++ == 0) show();
    return;
  }
  for (int column = 0; column < n; column++) {
    int rising = row + column, falling = row - column + n;
    if (column_used[column] || rising_used[rising] || falling_used[falling]) continue;
    column_used[column] = rising_used[rising] = falling_used[falling] = 1;
    queen[row] = column;
    place(row + 1);
    column_used[column] = rising_used[rising] = falling_used[falling] = 0;
  }
}

int main(int argc, char **argv) {
  n = argc > 1 ? atoi(argv[1]) : 5;
  if (n < 1 || n > MAX) {
    fprintf(stderr, "usage: %s [1 to %d]\n", argv[0], MAX);
    return 2;
  }
  place(0);
  printf("%d solution%s for %d queens\n", count, count == 1 ? "" : "s", n);
  return 0;
}
