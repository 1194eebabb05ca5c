/* Splits C source on standard input into tokens, and counts them by kind. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum kind { NAME, KEYWORD, NUMBER, STRING, CHARACTER, OPERATOR, KINDS };

static const char *const kind_names[KINDS] = {
    "name", "keyword", "number", "string", "character", "operator",
};
static const char *const keywords[] = {
    "break", "case", "char",  "const",  "continue", "default", "do",     "double",
    "else",  "enum", "float", "for",    "if",       "int",     "long",   "return",
    "short", "sizeof", "static", "struct", "switch", "typedef", "unsigned", "void", "while",
};
static const char *const operators[] = {
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=",
};

static char text[4096];
static int counts[KINDS];

static int is_keyword(const char *word, size_t size) {
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
    if (strlen(keywords[i]) == size && memcmp(keywords[i], word, size) == 0) return 1;
  }
  return 0;
}

static size_t operator_size(const char *at) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    size_t size = strlen(operators[i]);
    if (strncmp(at, operators[i], size) == 0) return size;
  }
  return 1;
}

static size_t quoted_size(const char *at) {
  const char *end = at + 1;
  while (*end && *end != *at) end += *end == '\\' && end[1] ? 2 : 1;
  return (size_t)(end - at) + (*end != 0);
}

/* White space and comments. */
static const char *skip(const char *at, int *line) {
  for (;; at++) {
    if (strncmp(at, "//", 2) == 0) {
      at += strcspn(at, "\n");
    } else if (strncmp(at, "/*", 2) == 0) {
      const char *end = strstr(at + 2, "*/");
      for (end = end ? end + 2 : at + strlen(at); at < end; at++) *line += *at == '\n';
      at--;
      continue;
    }
    if (!isspace((unsigned char)*at)) return at;
    *line += *at == '\n';
  }
}

int main(void) {
  int line = 1;
  size_t size = fread(text, 1, sizeof text - 1, stdin);
  text[size] = '\0';
  for (const char *at = skip(text, &line); *at; at = skip(at, &line)) {
    enum kind kind = OPERATOR;
    if (isalpha((unsigned char)*at) || *at == '_') {
      for (size = 1; isalnum((unsigned char)at[size]) || at[size] == '_'; size++) {
      }
      kind = is_keyword(at, size) ? KEYWORD : NAME;
    } else if (isdigit((unsigned char)*at)) {
      for (size = 1; isalnum((unsigned char)at[size]) || at[size] == '.'; size++) {
      }
      kind = NUMBER;
    } else if (*at == '"' || *at == '\'') {
      size = quoted_size(at);
      kind = *at == '"' ? STRING : CHARACTER;
    } else {
      size = operator_size(at);
    }
    printf("%d\t%s\t%.*s\n", line, kind_names[kind], (int)size, at);
    counts[kind]++;
    at += size;
  }
  for (int kind = 0; kind < KINDS; kind++) {
    if (counts[kind]) printf("%4d %s\n", counts[kind], kind_names[kind]);
  }
  return 0;
}
