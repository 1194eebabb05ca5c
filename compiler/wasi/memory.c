/* malloc in about twenty instructions: free lists of blocks of 16, 32, 64, ... bytes, and one of
 * larger blocks in multiples of 4096. The word before a block says what it is: below 32 the
 * logarithm of its size, else the size. New blocks come from the end of the heap; the memory does
 * not grow, it has its final size from the start, which costs nothing. */
#include "transputer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST 4
#define LARGEST 16
#define UNIT 4096u
#define KIND(block) (((unsigned *)(block))[-1])

typedef struct block {
  struct block *next;
} block_t;

static block_t *lists[LARGEST + 1];
static block_t *large;

static void *none(void) {
  errno = ENOMEM;
  return 0;
}

static unsigned stride_of(const void *block) {
  unsigned kind = KIND(block);
  return kind < 32 ? 1u << kind : kind;
}

/* A block from the end of the heap, NULL if it does not fit. */
static void *fresh(unsigned stride, unsigned kind) {
  char *block = transputer_break, *end = transputer_heap_end();
  if (block >= end || stride > (unsigned)(end - block)) return none();
  transputer_break = block + stride;
  KIND(block) = kind;
  return block;
}

/* The first block of a list that is large enough and aligned, taken out of it; NULL if there is
 * none. */
static void *reused(block_t **link, unsigned stride, size_t alignment) {
  for (block_t *block; (block = *link); link = &block->next) {
    if (stride_of(block) < stride || (unsigned)block & (alignment - 1)) continue;
    *link = block->next;
    return block;
  }
  return 0;
}

/* The size of a large block for `size` bytes, 0 if that is more than any memory. */
static unsigned large_stride(size_t size) {
  return size > 1u << 30 ? 0 : (unsigned)(size + 4 + UNIT - 1) & -UNIT;
}

static void *allocate_large(size_t size) {
  unsigned stride = large_stride(size);
  if (!stride) return none();
  void *block = reused(&large, stride, 1);
  return block ? block : fresh(stride, stride);
}

void *malloc(size_t size) {
  if (size > (1u << LARGEST) - 4) return allocate_large(size);
  unsigned kind = size <= 12 ? SMALLEST : 32u - (unsigned)__builtin_clz((unsigned)size + 3);
  block_t *block = lists[kind];
  if (!block) return fresh(1u << kind, kind);
  lists[kind] = block->next;
  return block;
}

void free(void *pointer) {
  if (!pointer) return;
  block_t *block = pointer, **list = KIND(pointer) < 32 ? &lists[KIND(pointer)] : &large;
  block->next = *list;
  *list = block;
}

/* Memory that was never given away is zero. */
void *calloc(size_t count, size_t size) {
  size_t bytes = count * size;
  if ((count | size) > 0xffff && size && bytes / size != count) return none();
  char *unused = transputer_break, *block = malloc(bytes);
  return block && block < unused ? memset(block, 0, bytes) : block;
}

size_t malloc_usable_size(void *block) { return block ? stride_of(block) - 4 : 0; }

void *realloc(void *block, size_t size) {
  if (!block) return malloc(size);
  unsigned stride = stride_of(block);
  if (size <= stride - 4) return block;
  if (KIND(block) >= 32 && (char *)block + stride == transputer_break && size <= 1u << 30) {
    unsigned more = large_stride(size) - stride;
    if (more > (unsigned)(transputer_heap_end() - transputer_break)) return none();
    transputer_break += more;
    KIND(block) += more;
    return block;
  }
  void *moved = malloc(size);
  if (!moved) return 0;
  memcpy(moved, block, stride - 4);
  free(block);
  return moved;
}

void *reallocarray(void *block, size_t count, size_t size) {
  if (size && count > (size_t)-1 / size) return none();
  return realloc(block, count * size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  if (alignment & (alignment - 1)) {
    errno = EINVAL;
    return 0;
  }
  if (alignment <= 16) return malloc(size);
  unsigned kind = SMALLEST;
  while (kind <= LARGEST && (1u << kind) - 4 < size) kind++;
  unsigned stride = kind <= LARGEST ? 1u << kind : large_stride(size);
  if (!stride) return none();
  void *block = reused(kind <= LARGEST ? &lists[kind] : &large, stride, alignment);
  if (block) return block;
  unsigned gap = -(unsigned)transputer_break & (alignment - 1);
  if (gap > (unsigned)(transputer_heap_end() - transputer_break)) return none();
  transputer_break += gap;
  block = fresh(stride, kind <= LARGEST ? kind : stride);
  if (!block) transputer_break -= gap;
  return block;
}

void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void **to, size_t alignment, size_t size) {
  if (alignment < sizeof(void *) || alignment & (alignment - 1)) return EINVAL;
  int error = errno;
  void *block = aligned_alloc(alignment, size);
  errno = error;
  if (!block) return ENOMEM;
  *to = block;
  return 0;
}

/* The heap's end as programs of their own allocators know it. It never sinks. */
void *sbrk(intptr_t more) {
  char *before = transputer_break;
  if (more == 0) return before;
  unsigned size = ((unsigned)more + 31) & ~15u;
  if (more < 0 || size < (unsigned)more || size > (unsigned)(transputer_heap_end() - before)) {
    errno = ENOMEM;
    return (void *)-1;
  }
  transputer_break = before + size;
  return before;
}
