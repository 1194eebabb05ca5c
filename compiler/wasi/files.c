/* There are no files and no sockets: no folder is open, and no path leads anywhere. */
#include "system.h"

int WASI(fd_prestat_get)(int fd, int to) { return (void)fd, (void)to, BADF; }
int WASI(fd_prestat_dir_name)(int fd, int path, int size) {
  return (void)fd, (void)path, (void)size, BADF;
}

int WASI(path_create_directory)(int fd, int path, int size) {
  return (void)fd, (void)path, (void)size, NOENT;
}
int WASI(path_filestat_get)(int fd, int flags, int path, int size, int to) {
  return (void)fd, (void)flags, (void)path, (void)size, (void)to, NOENT;
}
int WASI(path_filestat_set_times)(int fd, int flags, int path, int size, int64_t accessed,
                                  int64_t modified, int which) {
  return (void)fd, (void)flags, (void)path, (void)size, (void)accessed, (void)modified,
         (void)which, NOENT;
}
int WASI(path_link)(int fd, int flags, int path, int size, int new_fd, int new_path, int new_size) {
  return (void)fd, (void)flags, (void)path, (void)size, (void)new_fd, (void)new_path,
         (void)new_size, NOENT;
}
int WASI(path_open)(int fd, int flags, int path, int size, int how, int64_t base,
                    int64_t inheriting, int fd_flags, int to) {
  return (void)fd, (void)flags, (void)path, (void)size, (void)how, (void)base, (void)inheriting,
         (void)fd_flags, (void)to, NOENT;
}
int WASI(path_readlink)(int fd, int path, int size, int to, int most, int used) {
  return (void)fd, (void)path, (void)size, (void)to, (void)most, (void)used, NOENT;
}
int WASI(path_remove_directory)(int fd, int path, int size) {
  return (void)fd, (void)path, (void)size, NOENT;
}
int WASI(path_rename)(int fd, int path, int size, int new_fd, int new_path, int new_size) {
  return (void)fd, (void)path, (void)size, (void)new_fd, (void)new_path, (void)new_size, NOENT;
}
int WASI(path_symlink)(int path, int size, int fd, int new_path, int new_size) {
  return (void)path, (void)size, (void)fd, (void)new_path, (void)new_size, NOENT;
}
int WASI(path_unlink_file)(int fd, int path, int size) {
  return (void)fd, (void)path, (void)size, NOENT;
}

int WASI(sock_accept)(int fd, int flags, int to) { return (void)fd, (void)flags, (void)to, BADF; }
int WASI(sock_recv)(int fd, int blocks, int count, int flags, int size, int out_flags) {
  return (void)fd, (void)blocks, (void)count, (void)flags, (void)size, (void)out_flags, BADF;
}
int WASI(sock_send)(int fd, int blocks, int count, int flags, int size) {
  return (void)fd, (void)blocks, (void)count, (void)flags, (void)size, BADF;
}
int WASI(sock_shutdown)(int fd, int how) { return (void)fd, (void)how, BADF; }
