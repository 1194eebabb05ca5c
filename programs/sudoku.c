/* Sudoku by constraint propagation and search.
 *
 * Arguments: the puzzle, 81 characters row by row, 1 to 9 or 0 or . for a blank; and after how many
 * solutions to stop, 1 to 9, 1 unless it is given. Output: for each solution the number of guesses up to it
 * and the solved grid as one line of 81 digits. Exit code 1 if the puzzle is malformed or has no
 * solution.
 *
 * The candidates of a digit are kept as bits of the grid: three bands of three rows, 27 cells in a
 * word, cell (row r of the band, column c) at bit 9r + c. A word thus answers for 27 cells at once.
 * Three neighbouring cells of one row and one box make a minirow; MINIROWS marks their first cells.
 * A row of a band has three minirows and so has a box, and a digit that fits in one minirow only
 * of its row (or box) fits nowhere else in that minirow's box (or row). */
#include <stdio.h>

#define BANDS 3
#define DIGITS 9
#define BAND 0x7ffffffu      /* all 27 cells of a band */
#define ROW 0x1ffu           /* its first row */
#define BOX 0x1c0e07u        /* its first box */
#define COLUMN 0x40201u      /* its first column; also the first minirow of each row */
#define MINIROWS 0x1249249u  /* the first cell of each minirow */
#define FIRST_ROW 0x49u      /* the first cell of each minirow of the first row */
#define CELLS 81

typedef unsigned word;

typedef struct {
  word candidates[DIGITS][BANDS];
  word examined[DIGITS][BANDS]; /* the candidates when examine() last saw them */
  word placed[BANDS];           /* cells that hold their digit */
} grid;

/* Not static, so that whoever watches the memory can ask the linker where they are. */
grid grids[CELLS]; /* one for each guess that stands: every guess fills a cell */
int guesses;

static int solutions, wanted = 1;

/* Puts a digit into the cell `bit` of a band, and takes it from the cells that see that cell. */
static void place(grid *g, int digit, int band, word bit) {
  word *own = g->candidates[digit];
  word column = ((bit | bit >> 9 | bit >> 18) & ROW) * COLUMN;
  word minirow = (bit | bit >> 1 | bit >> 2) & MINIROWS;
  word row = ((minirow | minirow >> 3 | minirow >> 6) & COLUMN) * ROW;
  word box = ((minirow | minirow >> 9 | minirow >> 18) & FIRST_ROW) * BOX;
  g->placed[band] |= bit;
  for (int d = 0; d < DIGITS; d++) g->candidates[d][band] &= ~bit;
  for (int b = 0; b < BANDS; b++) own[b] &= ~column;
  own[band] = (own[band] & ~(row | box)) | bit;
}

/* Fills cells that have one candidate left. Returns the number filled, -1 if a cell has none. */
static int fill_cells(grid *g) {
  int filled = 0;
  for (int band = 0; band < BANDS; band++) {
    word once = 0, twice = 0;
    for (int d = 0; d < DIGITS; d++) {
      word w = g->candidates[d][band];
      twice |= once & w;
      once |= w;
    }
    if (once != BAND) return -1;
    for (word rest = once & ~twice & ~g->placed[band]; rest; rest &= rest - 1) {
      word bit = rest & -rest;
      int d = 0;
      while (!(g->candidates[d][band] & bit)) {
        if (++d == DIGITS) return -1; /* its candidate was taken a moment ago */
      }
      place(g, d, band, bit);
      filled++;
    }
  }
  return filled;
}

/* Looks where one digit fits in the rows and boxes of a band: drops candidates that a minirow
 * rules out, and places the digit where only one cell is left. Returns whether anything changed,
 * -1 if a row or box has no place. */
static int examine(grid *g, int digit, int band) {
  word w = g->candidates[digit][band];
  word open = (w | w >> 1 | w >> 2) & MINIROWS; /* minirows with at least one cell */
  word several = ((w & (w >> 1 | w >> 2)) | (w >> 1 & w >> 2)) & MINIROWS;
  word in_row = open | open >> 3 | open >> 6, in_box = open | open >> 9 | open >> 18;
  if ((in_row & COLUMN) != COLUMN || (in_box & FIRST_ROW) != FIRST_ROW) return -1;

  /* Exactly one of three: odd, and not all three. */
  word row = (open ^ open >> 3 ^ open >> 6) & ~(open & open >> 3 & open >> 6) & COLUMN;
  word box = (open ^ open >> 9 ^ open >> 18) & ~(open & open >> 9 & open >> 18) & FIRST_ROW;
  word alone_in_row = open & (row * FIRST_ROW), alone_in_box = open & (box * COLUMN);
  word taken_box = (alone_in_row | alone_in_row >> 9 | alone_in_row >> 18) & FIRST_ROW;
  word taken_row = (alone_in_box | alone_in_box >> 3 | alone_in_box >> 6) & COLUMN;
  word ruled_out =
      open & ((taken_box * COLUMN & ~alone_in_row) | (taken_row * FIRST_ROW & ~alone_in_box));

  w &= ~(ruled_out * 7);
  g->candidates[digit][band] = g->examined[digit][band] = w;
  word single = w & ((alone_in_row | alone_in_box) & ~several) * 7 & ~g->placed[band];
  for (word rest = single; rest; rest &= rest - 1) {
    word bit = rest & -rest;
    if (!(g->candidates[digit][band] & bit)) return -1;
    place(g, digit, band, bit);
  }
  return (single | ruled_out) != 0;
}

/* Places one digit where it has one cell left in a column. Returns like examine(). */
static int fill_columns(grid *g, int digit) {
  word *own = g->candidates[digit], once = 0, twice = 0;
  for (int band = 0; band < BANDS; band++) {
    for (word w = own[band]; w; w >>= 9) {
      twice |= once & w;
      once |= w & ROW;
    }
  }
  if (once != ROW) return -1;
  word columns = (once & ~twice) * COLUMN;
  int changed = 0;
  for (int band = 0; band < BANDS; band++) {
    for (word rest = own[band] & columns & ~g->placed[band]; rest; rest &= rest - 1) {
      place(g, digit, band, rest & -rest);
      changed = 1;
    }
  }
  return changed;
}

/* Deduces all it can. Returns 0 if that leads to a contradiction. */
static int propagate(grid *g) {
  int changed;
  do {
    while ((changed = fill_cells(g)) > 0) {
    }
    for (int d = 0; d < DIGITS && changed >= 0; d++) {
      int looked = 0;
      for (int band = 0; band < BANDS; band++) {
        if (g->candidates[d][band] == g->examined[d][band]) continue;
        int result = examine(g, d, band);
        if (result < 0) return 0;
        changed |= result;
        looked = 1;
      }
      if (!looked) continue;
      int result = fill_columns(g, d);
      if (result < 0) return 0;
      changed |= result;
    }
  } while (changed > 0);
  return changed == 0;
}

static int solved(const grid *g) {
  return (g->placed[0] & g->placed[1] & g->placed[2]) == BAND;
}

/* Finds a cell with two candidates, or else three, or else more; returns its band. */
static int choose(const grid *g, word *bit) {
  word three[BANDS], more[BANDS];
  for (int band = 0; band < BANDS; band++) {
    word a = 0, b = 0, c = 0, d = 0; /* cells with at least 1, 2, 3, 4 candidates */
    for (int digit = 0; digit < DIGITS; digit++) {
      word w = g->candidates[digit][band];
      d |= c & w;
      c |= b & w;
      b |= a & w;
      a |= w;
    }
    word two = b & ~c;
    if (two) {
      *bit = two & -two;
      return band;
    }
    three[band] = c & ~d;
    more[band] = d;
  }
  const word *cells = three[0] | three[1] | three[2] ? three : more;
  int band = cells[0] ? 0 : cells[1] ? 1 : 2;
  *bit = cells[band] & -cells[band];
  return band;
}

static void print_solution(const grid *g) {
  printf("guesses: %d\n", guesses);
  for (int band = 0; band < BANDS; band++) {
    for (word bit = 1; bit <= BAND; bit <<= 1) {
      int d = 0;
      while (!(g->candidates[d][band] & bit)) d++;
      putchar('1' + d);
    }
  }
  putchar('\n');
}

/* Solves grids[depth]. Returns whether enough solutions have been found. */
static int solve(int depth) {
  grid *g = &grids[depth];
  if (!propagate(g)) return 0;
  if (solved(g)) {
    print_solution(g);
    return ++solutions == wanted;
  }
  word bit;
  int band = choose(g, &bit);
  for (int d = 0; d < DIGITS; d++) {
    if (!(g->candidates[d][band] & bit)) continue;
    guesses++;
    grids[depth + 1] = *g;
    place(&grids[depth + 1], d, band, bit);
    if (solve(depth + 1)) return 1;
  }
  return 0;
}

/* Places the clues. Returns 0 if the puzzle is malformed or contradicts itself at once. */
static int load(grid *g, const char *puzzle) {
  for (int d = 0; d < DIGITS; d++) {
    for (int band = 0; band < BANDS; band++) g->candidates[d][band] = BAND;
  }
  for (int band = 0; band < BANDS; band++) {
    for (word bit = 1; bit <= BAND; bit <<= 1) {
      unsigned digit = (unsigned)*puzzle++ - '1';
      if (digit >= DIGITS) continue;
      if (!(g->candidates[digit][band] & bit)) return 0;
      place(g, (int)digit, band, bit);
    }
  }
  return 1;
}

static int well_formed(const char *puzzle) {
  int cells = 0;
  for (; puzzle[cells]; cells++) {
    if (cells == CELLS || (puzzle[cells] != '.' && (unsigned)puzzle[cells] - '0' > 9)) return 0;
  }
  return cells == CELLS;
}

int main(int argc, char **argv) {
  if (argc == 3) wanted = argv[2][0] && !argv[2][1] ? argv[2][0] - '0' : 0;
  if (argc < 2 || argc > 3 || wanted < 1 || wanted > 9 || !well_formed(argv[1])) {
    puts("usage: sudoku PUZZLE [SOLUTIONS], with 81 characters: 1 to 9, and 0 or . for a blank");
    return 1;
  }
  if (load(&grids[0], argv[1])) solve(0);
  if (!solutions) puts("this puzzle has no solution");
  return !solutions;
}
