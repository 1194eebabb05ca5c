/* The three standard streams. They look like a terminal, so that the C library writes a line as
 * soon as it is complete; reading stops after a line, so that a program can answer one before the
 * next is there. */
#include "system.h"

#define CHARACTER_DEVICE 2
#define RIGHT_READ (1u << 1)
#define RIGHT_WRITE (1u << 6)

typedef struct {
  unsigned char *start;
  size_t size;
} block_t;

static int is_open(int stream) { return (unsigned)stream < 3 && !is_closed(stream); }

int WASI(fd_write)(int stream, int blocks, int count, int written) {
  const block_t *block = (const block_t *)blocks;
  size_t total = 0;
  if (!is_open(stream) || stream == 0) return BADF;
  for (; count; count--, block++) {
    const unsigned char *byte = block->start, *end = byte + block->size;
    total += block->size;
    if (stream == 1) {
      while (byte != end) transputer_output(*byte++);
    } else {
      while (byte != end) transputer_error(*byte++);
    }
  }
  *(size_t *)written = total;
  return SUCCESS;
}

int WASI(fd_read)(int stream, int blocks, int count, int read) {
  const block_t *block = (const block_t *)blocks;
  int start = next_input(), k = start, byte = 0;
  if (!is_open(stream) || stream != 0) return BADF;
  for (; count && byte >= 0 && byte != '\n'; count--, block++) {
    unsigned char *to = block->start, *end = to + block->size;
    while (to != end) {
      byte = transputer_input(k);
      if (byte < 0) break;
      *to++ = (unsigned char)byte;
      k++;
      if (byte == '\n') break;
    }
  }
  set_next_input(k);
  *(size_t *)read = (size_t)(k - start);
  return SUCCESS;
}

int WASI(fd_close)(int stream) {
  if (!is_open(stream)) return BADF;
  close_stream(stream);
  return SUCCESS;
}

int WASI(fd_seek)(int stream, int64_t offset, int whence, int position) {
  (void)offset, (void)whence, (void)position;
  return is_open(stream) ? SPIPE : BADF;
}

int WASI(fd_tell)(int stream, int position) {
  (void)position;
  return is_open(stream) ? SPIPE : BADF;
}

int WASI(fd_fdstat_get)(int stream, int status) {
  uint32_t *word = (uint32_t *)status;
  if (!is_open(stream)) return BADF;
  word[0] = CHARACTER_DEVICE;
  word[2] = stream ? RIGHT_WRITE : RIGHT_READ;
  word[1] = word[3] = word[4] = word[5] = 0;
  return SUCCESS;
}

int WASI(fd_filestat_get)(int stream, int status) {
  uint32_t *word = (uint32_t *)status;
  if (!is_open(stream)) return BADF;
  for (int i = 0; i < 16; i++) word[i] = 0;
  word[4] = CHARACTER_DEVICE;
  return SUCCESS;
}

/* Calls on a stream that do nothing, and those that a terminal does not support. */
static int nothing(int stream) { return is_open(stream) ? SUCCESS : BADF; }
static int refused(int stream, int error) { return is_open(stream) ? error : BADF; }

int WASI(fd_sync)(int stream) { return nothing(stream); }
int WASI(fd_datasync)(int stream) { return nothing(stream); }
int WASI(fd_fdstat_set_flags)(int stream, int flags) { return (void)flags, nothing(stream); }
int WASI(fd_fdstat_set_rights)(int stream, int64_t base, int64_t inheriting) {
  return (void)base, (void)inheriting, nothing(stream);
}
int WASI(fd_advise)(int stream, int64_t offset, int64_t size, int advice) {
  return (void)offset, (void)size, (void)advice, refused(stream, SPIPE);
}
int WASI(fd_allocate)(int stream, int64_t offset, int64_t size) {
  return (void)offset, (void)size, refused(stream, NOTSUP);
}
int WASI(fd_filestat_set_size)(int stream, int64_t size) {
  return (void)size, refused(stream, INVAL);
}
int WASI(fd_filestat_set_times)(int stream, int64_t accessed, int64_t modified, int flags) {
  return (void)accessed, (void)modified, (void)flags, refused(stream, NOTSUP);
}
int WASI(fd_pread)(int stream, int blocks, int count, int64_t offset, int read) {
  return (void)blocks, (void)count, (void)offset, (void)read, refused(stream, SPIPE);
}
int WASI(fd_pwrite)(int stream, int blocks, int count, int64_t offset, int written) {
  return (void)blocks, (void)count, (void)offset, (void)written, refused(stream, SPIPE);
}
int WASI(fd_renumber)(int from, int to) { return (void)to, refused(from, NOTSUP); }
int WASI(fd_readdir)(int stream, int to, int size, int64_t cookie, int used) {
  return (void)stream, (void)to, (void)size, (void)cookie, (void)used, BADF;
}

#ifndef TRANSPUTER_LINKED
#include <errno.h>

/* zig's library closes by a symbol of its own; a C program's close must come here too. */
int close(int stream) {
  int error = WASI(fd_close)(stream);
  if (error) errno = error;
  return error ? -1 : 0;
}
#endif
