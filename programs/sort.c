/* Bubble sort and quicksort of the same numbers, and what each one compares.
 * Input: up to 100 numbers; ten of its own if there are none. */
#include <stdio.h>

#define MAX_COUNT 100

static const int sample[10] = {61, -8, 35, 86, 32, 0, 41, 27, -21, 42};
static int bubble[MAX_COUNT], quick[MAX_COUNT];
static int comparisons;

static void bubble_sort(int *a, int count) {
  while (count > 1) {
    int last = 0; /* everything from here on is in place */
    for (int i = 1; i < count; i++) {
      comparisons++;
      if (a[i - 1] <= a[i]) continue;
      int t = a[i];
      a[i] = a[i - 1];
      a[i - 1] = t;
      last = i;
    }
    count = last;
  }
}

/* Sorts a[low] to a[high]. */
static void quick_sort(int *a, int low, int high) {
  while (low < high) {
    int pivot = a[(low + high) >> 1], i = low, j = high;
    while (i <= j) {
      while (comparisons++, a[i] < pivot) i++;
      while (comparisons++, a[j] > pivot) j--;
      if (i > j) break;
      int t = a[i];
      a[i++] = a[j];
      a[j--] = t;
    }
    quick_sort(a, low, j);
    low = i;
  }
}

static void report(const char *name, const int *a, int count) {
  printf("%s", name);
  for (int i = 0; i < count; i++) {
    printf(" %d", a[i]);
  }
  printf(" (%d comparisons)\n", comparisons);
  comparisons = 0;
}

int main(void) {
  int count = 0;
  while (count < MAX_COUNT && scanf("%d", &bubble[count]) == 1) count++;
  if (!count) {
    for (; count < 10; count++) bubble[count] = sample[count];
  }
  for (int i = 0; i < count; i++) quick[i] = bubble[i];

  bubble_sort(bubble, count);
  report("bubble", bubble, count);
  quick_sort(quick, 0, count - 1);
  report("quick", quick, count);
  for (int i = 0; i < count; i++) {
    if (bubble[i] != quick[i]) return 1;
  }
  return 0;
}
