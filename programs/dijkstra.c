/* Shortest paths from one node of a directed graph, with adjacency lists and a binary heap.
 * Input: lines `FROM TO LENGTH` with names of nodes; the first node is where all paths begin. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
  struct edge *next;
  struct node *to;
  int length;
} edge_t;

typedef struct node {
  struct node *next; /* in the order of the input */
  char *name;
  edge_t *edges;
  struct node *before;
  int distance, done;
} node_t;

typedef struct {
  node_t *node;
  int distance;
} entry_t;

static node_t *first, **last = &first;
static entry_t *heap;
static size_t heap_size, heap_room;

static void *checked(void *block) {
  if (block) return block;
  perror("dijkstra");
  exit(1);
}

static node_t *find(const char *name) {
  for (node_t *node = first; node; node = node->next) {
    if (strcmp(node->name, name) == 0) return node;
  }
  node_t *node = checked(calloc(1, sizeof *node));
  node->name = checked(strdup(name));
  node->distance = INT_MAX;
  *last = node;
  last = &node->next;
  return node;
}

static void push(node_t *node, int distance) {
  if (heap_size == heap_room) {
    heap_room = heap_room ? 2 * heap_room : 8;
    heap = checked(realloc(heap, heap_room * sizeof *heap));
  }
  size_t at = heap_size++;
  for (; at && heap[(at - 1) / 2].distance > distance; at = (at - 1) / 2) {
    heap[at] = heap[(at - 1) / 2];
  }
  heap[at] = (entry_t){node, distance};
}

static entry_t pop(void) {
  entry_t least = heap[0], moved = heap[--heap_size];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < heap_size; at = child) {
    if (child + 1 < heap_size && heap[child + 1].distance < heap[child].distance) child++;
    if (heap[child].distance >= moved.distance) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
  return least;
}

static void search(node_t *start) {
  start->distance = 0;
  push(start, 0);
  while (heap_size) {
    node_t *node = pop().node;
    if (node->done) continue;
    node->done = 1;
    for (edge_t *edge = node->edges; edge; edge = edge->next) {
      int distance = node->distance + edge->length;
      if (distance >= edge->to->distance) continue;
      edge->to->distance = distance;
      edge->to->before = node;
      push(edge->to, distance);
    }
  }
}

static void print_path(const node_t *node) {
  if (node->before) {
    print_path(node->before);
    printf(" - ");
  }
  printf("%s", node->name);
}

int main(void) {
  char from[32], to[32];
  int length, count;
  while ((count = scanf("%31s %31s %d", from, to, &length)) == 3 && length >= 0) {
    edge_t *edge = checked(malloc(sizeof *edge));
    node_t *node = find(from);
    *edge = (edge_t){node->edges, find(to), length};
    node->edges = edge;
  }
  if (count != EOF || !first) {
    fputs("expected lines: FROM TO LENGTH\n", stderr);
    return 1;
  }
  search(first);
  for (node_t *node = first; node; node = node->next) {
    if (!node->done) {
      printf("%-8s unreachable\n", node->name);
      continue;
    }
    printf("%-8s %5d  ", node->name, node->distance);
    print_path(node);
    putchar('\n');
  }
  return 0;
}
