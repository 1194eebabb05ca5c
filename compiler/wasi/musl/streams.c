/* The C library's streams without its system calls: bytes go to the machine at once. A stream that
 * is written line by line is given everything but single characters directly: looking for the end of
 * the line and copying would cost three times as much as the output. */
#include "stdio_impl.h"

#include <errno.h>
#include <string.h>

#include "transputer.h"

size_t __stdio_write(FILE *f, const unsigned char *from, size_t size) {
  const unsigned char *byte = f->wbase, *end = f->wpos;
  if (f->fd == 1 && !transputer_closed[1]) {
    while (byte != end) transputer_output(*byte++);
    for (byte = from, end = from + size; byte != end;) transputer_output(*byte++);
  } else if (f->fd == 2 && !transputer_closed[2]) {
    while (byte != end) transputer_error(*byte++);
    for (byte = from, end = from + size; byte != end;) transputer_error(*byte++);
  } else {
    f->wpos = f->wbase = f->wend = 0;
    f->flags |= F_ERR;
    errno = EBADF;
    return 0;
  }
  f->wend = f->buf + f->buf_size;
  f->wpos = f->wbase = f->buf;
  return size;
}

size_t __stdout_write(FILE *f, const unsigned char *from, size_t size) {
  f->write = __stdio_write;
  return __stdio_write(f, from, size);
}

/* Bytes of the input up to `end` or behind the end of a line; where they end. `*more` tells whether
 * neither the line nor the input has ended. */
static unsigned char *read_line(unsigned char *to, const unsigned char *end, int *more) {
  int k = transputer_position, byte = 0;
  while (to != end && byte != '\n') {
    byte = transputer_input(k);
    if (byte < 0) break;
    *to++ = (unsigned char)byte;
    k++;
  }
  transputer_position = k;
  *more = byte >= 0 && byte != '\n';
  return to;
}

/* Reads into `to`, all but the last byte, and then into the stream's buffer, whose first byte is
 * that last one. */
size_t __stdio_read(FILE *f, unsigned char *to, size_t size) {
  if (f->fd != 0 || transputer_closed[0]) {
    f->flags |= F_ERR;
    errno = EBADF;
    return 0;
  }
  int more;
  unsigned char *end = read_line(to, to + size - !!f->buf_size, &more);
  if (more && f->buf_size) {
    f->rend = read_line(f->buf, f->buf + f->buf_size, &more);
    f->rpos = f->buf;
    if (f->rpos != f->rend) *end++ = *f->rpos++;
  }
  if (end == to) f->flags |= F_EOF;
  return (size_t)(end - to);
}

size_t __fwritex(const unsigned char *restrict from, size_t size, FILE *restrict f) {
  if (!f->wend && __towrite(f)) return 0;
  if (size > (size_t)(f->wend - f->wpos) || f->lbf >= 0) return f->write(f, from, size);
  memcpy(f->wpos, from, size);
  f->wpos += size;
  return size;
}

size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict f) {
  size_t bytes = size * count;
  if (!bytes) return 0;
  size_t written = __fwritex(from, bytes, f);
  return written == bytes ? count : written / size;
}

size_t fwrite_unlocked(const void *restrict from, size_t size, size_t count, FILE *restrict f)
    __attribute__((alias("fwrite")));

/* At the end of a program what is written is flushed. (What was read ahead need not be given back:
 * no stream can be sought.) */
static __attribute__((noinline)) void finish(FILE *f) {
  if (f && f->wpos != f->wbase) f->write(f, 0, 0);
}

static FILE *volatile unused;
extern FILE *volatile __stdout_used __attribute__((__weak__, alias("unused")));
extern FILE *volatile __stderr_used __attribute__((__weak__, alias("unused")));

void __stdio_exit(void) {
  for (FILE *f = *__ofl_lock(); f; f = f->next) finish(f);
  finish(__stdout_used);
  finish(__stderr_used);
}

void __stdio_exit_needed(void) __attribute__((alias("__stdio_exit")));
