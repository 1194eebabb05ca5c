/* The assignment problem: each row gets a column of its own so that the sum of the costs is
 * least. The Hungarian algorithm in O(n^3): rows are added one by one, each by a shortest
 * augmenting path in the reduced costs  cost[i][j] - u[i] - v[j] >= 0.
 *
 * Input: n (1 to 20), then n rows of n costs. Output: after each row the columns of the rows so
 * far and their cost; at the end the assignment and the optimal cost. Columns count from 1. */
#include <stdio.h>

#define MAX_N 20
#define FAR 0x7fffffff
#define MAX_COST 1000000

/* Not static, so that whoever watches the memory can ask the linker where they are. */
int n;
int cost[MAX_N][MAX_N];
int u[MAX_N], v[MAX_N];           /* potentials of rows and columns */
int row_of[MAX_N], col_of[MAX_N]; /* the matching, -1 for none */

static int distance[MAX_N];            /* length of the shortest path to a column so far */
static int previous[MAX_N];            /* the row before that column on the path */
static int order[MAX_N];               /* columns: those with final distances come first */

static int read_matrix(void) {
  if (scanf("%d", &n) != 1 || n < 1 || n > MAX_N) {
    puts("the input must start with n, 1 to 20");
    return 0;
  }
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      if (scanf("%d", &cost[i][j]) != 1) {
        puts("n rows of n costs must follow");
        return 0;
      }
      if (cost[i][j] < -MAX_COST || cost[i][j] > MAX_COST) {
        puts("costs must be between -1000000 and 1000000");
        return 0;
      }
    }
  }
  return 1;
}

/* Finds the shortest path from row `start` to a free column, adjusts the potentials, and
 * exchanges the matched and unmatched edges along the path. */
static void augment(int start) {
  for (int j = 0; j < n; j++) {
    order[j] = j;
    distance[j] = FAR;
  }
  int row = start, done = 0, reached = 0, column;
  for (;;) {
    const int *costs = cost[row];
    int base = reached - u[row], best = FAR, at = done;
    for (int k = done; k < n; k++) {
      int j = order[k];
      int length = base + costs[j] - v[j];
      if (length < distance[j]) {
        distance[j] = length;
        previous[j] = row;
      } else {
        length = distance[j];
      }
      if (length < best) {
        best = length;
        at = k;
      }
    }
    reached = best;
    column = order[at];
    row = row_of[column];
    if (row < 0) break;
    order[at] = order[done];
    order[done++] = column;
  }

  u[start] += reached;
  for (int k = 0; k < done; k++) {
    int j = order[k], slack = reached - distance[j];
    u[row_of[j]] += slack;
    v[j] -= slack;
  }
  do {
    row = previous[column];
    int next = col_of[row];
    row_of[column] = row;
    col_of[row] = column;
    column = next;
  } while (row != start);
}

/* Prints the columns of the first `rows` rows and returns their cost. */
static int print_assignment(int rows) {
  int total = 0;
  for (int i = 0; i < rows; i++) {
    total += cost[i][col_of[i]];
    printf(" %d", col_of[i] + 1);
  }
  return total;
}

int main(void) {
  for (int i = 0; i < MAX_N; i++) row_of[i] = col_of[i] = -1;
  if (!read_matrix()) return 1;
  for (int i = 0; i < n; i++) {
    augment(i);
    printf("row %d:", i + 1);
    int total = print_assignment(i + 1);
    printf(", cost %d\n", total);
  }
  printf("assignment:");
  int total = print_assignment(n);
  printf("\noptimal cost: %d\n", total);
  return 0;
}
