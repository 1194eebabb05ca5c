/* Prints the lines of standard input that match a pattern, with the match in brackets: a small grep.
 * Pattern: . * + ? ^ $ [a-z] [^a-z], a backslash before what is meant literally. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of the single-character item at `p`. */
static const char *item_end(const char *p) {
  if (*p == '\\' && p[1]) return p + 2;
  if (*p != '[') return p + 1;
  p += p[1] == '^' ? 2 : 1;
  if (*p == ']') p++; /* first in a set, it means itself */
  while (*p && *p != ']') p++;
  if (*p) return p + 1;
  fputs("a set lacks its ]\n", stderr);
  exit(2);
}

static int in_set(const char *p, const char *end, unsigned char byte) {
  int wanted = 1;
  if (*p == '^') wanted = 0, p++;
  for (; p < end; p++) {
    unsigned char low = (unsigned char)*p, high = low;
    if (p + 2 < end && p[1] == '-') high = (unsigned char)p[2], p += 2;
    if (low <= byte && byte <= high) return wanted;
  }
  return !wanted;
}

static int item_matches(const char *item, const char *end, char byte) {
  if (!byte) return 0;
  if (*item == '.') return 1;
  if (*item == '[') return in_set(item + 1, end - 1, (unsigned char)byte);
  return *(*item == '\\' && item[1] ? item + 1 : item) == byte;
}

/* Where a match of `pattern` at the start of `text` ends, NULL if there is none. */
static const char *match_here(const char *pattern, const char *text) {
  if (!*pattern) return text;
  if (*pattern == '$' && !pattern[1]) return *text ? NULL : text;
  const char *end = item_end(pattern);
  int least = *end == '+', most_one = *end == '?';
  if (*end != '*' && *end != '+' && *end != '?') {
    return item_matches(pattern, end, *text) ? match_here(end, text + 1) : NULL;
  }
  const char *longest = text;
  while (item_matches(pattern, end, *longest)) {
    longest++;
    if (most_one) break;
  }
  for (; longest >= text + least; longest--) {
    const char *found = match_here(end + 1, longest);
    if (found) return found;
  }
  return NULL;
}

int main(int argc, char **argv) {
  const char *pattern = argc > 1 ? argv[1] : "[0-9]+\\.?[0-9]*";
  char line[256];
  int matches = 0;
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    for (const char *start = line;; start++) {
      const char *end = match_here(pattern + (*pattern == '^'), start);
      if (end) {
        matches++;
        printf("%.*s[%.*s]%s\n", (int)(start - line), line, (int)(end - start), start, end);
        break;
      }
      if (*pattern == '^' || !*start) break;
    }
  }
  return matches ? 0 : 1;
}
