/* The Mandelbrot set in characters: how many steps each point takes to leave. */
#include <stdio.h>
#include <stdlib.h>

static int steps(double x, double y, int most) {
  double a = 0.0, b = 0.0;
  for (int step = 0; step < most; step++) {
    double a2 = a * a, b2 = b * b;
    if (a2 + b2 > 4.0) return step;
    b = 2.0 * a * b + y;
    a = a2 - b2 + x;
  }
  return most;
}

int main(int argc, char **argv) {
  static const char shades[] = " .:-=+*#%@";
  int width = argc > 1 ? atoi(argv[1]) : 11;
  int height = argc > 2 ? atoi(argv[2]) : 5;
  int most = argc > 3 ? atoi(argv[3]) : 6;
  if (width < 2 || height < 2 || most < 1) {
    fprintf(stderr, "usage: %s [WIDTH HEIGHT STEPS]\n", argv[0]);
    return 2;
  }
  for (int row = 0; row < height; row++) {
    for (int column = 0; column < width; column++) {
      double x = -2.1 + 2.9 * column / (width - 1), y = -1.2 + 2.4 * row / (height - 1);
      putchar(shades[steps(x, y, most) * 9 / most]);
    }
    putchar('\n');
  }
  return 0;
}
