/* A file layer for LD_PRELOAD: records what a process does to the files below a directory, and fails on request.
 *
 * OSTINATO_DISK_ROOT     the directory
 * OSTINATO_DISK_JOURNAL  receives a record for each write, sync, truncation, creation, rename and removal, in order
 * OSTINATO_DISK_CONTROL  two 64-bit integers: a mode, and the number of calls after which the process dies
 *
 * Modes: 0 none, 1 writes fail for lack of space, 2 the file system is read-only, 3 syncs fail,
 * 4 the process dies (SIGKILL) when the count reaches 0, amid a write if that is the call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 4096
enum { NONE, FULL, READ_ONLY, NO_SYNC, DIE };
struct record { uint8_t type; uint8_t pad; uint16_t path; uint32_t length; uint64_t offset; } __attribute__((packed));

static char *paths[FILES]; /* of descriptors below the root, relative to it */
static const char *root;
static size_t root_length;
static int journal = -1;
static volatile int64_t *control;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    root = getenv("OSTINATO_DISK_ROOT");
    if (!root) return;
    root_length = strlen(root);
    journal = syscall(SYS_openat, AT_FDCWD, getenv("OSTINATO_DISK_JOURNAL"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int file = syscall(SYS_openat, AT_FDCWD, getenv("OSTINATO_DISK_CONTROL"), O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        void *page = mmap(0, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) control = page;
        syscall(SYS_close, file);
    }
}

static const char *below(const char *path) {
    if (!root || strncmp(path, root, root_length)) return 0;
    if (path[root_length] == 0) return ".";
    return path[root_length] == '/' ? path + root_length + 1 : 0;
}

static const char *of(int fd) { return fd >= 0 && fd < FILES ? paths[fd] : 0; }

static void put(char type, const char *path, uint64_t offset, const void *data, size_t length) {
    struct record head = {type, 0, strlen(path), length, offset};
    size_t size = sizeof head + head.path + length;
    char *all = malloc(size);
    memcpy(all, &head, sizeof head);
    memcpy(all + sizeof head, path, head.path);
    if (length) memcpy(all + sizeof head + head.path, data, length);
    if (syscall(SYS_write, journal, all, size) != (long)size) abort();
    free(all);
}

static int mode(void) { return control ? (int)control[0] : NONE; }

/* Whether this is the call at which the process dies. */
static int ends(void) { return mode() == DIE && --control[1] == 0; }

static void die(void) { kill(getpid(), SIGKILL); pause(); }

static int failed(void) {
    if (mode() == FULL) { errno = ENOSPC; return 1; }
    if (mode() == READ_ONLY) { errno = EROFS; return 1; }
    return 0;
}

static int opened(int dir, const char *path, int flags, mode_t how) {
    const char *name = below(path);
    if (!name) return syscall(SYS_openat, dir, path, flags, how);
    pthread_mutex_lock(&lock);
    struct stat found;
    int is_new = (flags & O_CREAT) && stat(path, &found);
    int fd = -1;
    if (!is_new || !failed()) {
        fd = syscall(SYS_openat, dir, path, flags, how);
        if (fd >= 0 && fd < FILES) {
            paths[fd] = strdup(name);
            if (is_new) put('c', name, 0, 0, 0);
            else if (flags & O_TRUNC) put('t', name, 0, 0, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE mode_t how = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); how = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, how); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, how); }
int openat(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags, how); }
int openat64(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags, how); }

int close(int fd) {
    if (of(fd)) { char *path = paths[fd]; paths[fd] = 0; free(path); }
    return syscall(SYS_close, fd);
}

static ssize_t written(int fd, const void *data, size_t length, off_t offset, int positioned) {
    const char *name = of(fd);
    if (!name) return positioned ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
    pthread_mutex_lock(&lock);
    ssize_t result = -1;
    if (!failed()) {
        int last = ends();
        if (last) length = length / 2; /* torn */
        if (!positioned) offset = syscall(SYS_lseek, fd, 0, SEEK_CUR);
        result = positioned ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
        if (result > 0) put('w', name, offset, data, result);
        if (last) die();
    }
    pthread_mutex_unlock(&lock);
    return result;
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return written(fd, data, length, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) { return written(fd, data, length, offset, 1); }
ssize_t write(int fd, const void *data, size_t length) { return written(fd, data, length, 0, 0); }

static int synced(int fd, int call) {
    const char *name = of(fd);
    if (!name) return syscall(call, fd);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (mode() == NO_SYNC) errno = EIO;
    else {
        if (ends()) die();
        result = syscall(call, fd);
        if (!result) put('s', name, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int truncated(int fd, off_t size) {
    const char *name = of(fd);
    if (!name) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!failed()) {
        if (ends()) die();
        result = syscall(SYS_ftruncate, fd, size);
        if (!result) put('t', name, size, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate(int fd, off_t size) { return truncated(fd, size); }
int ftruncate64(int fd, off_t size) { return truncated(fd, size); }

int unlink(const char *path) {
    const char *name = below(path);
    if (!name) return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!failed()) {
        if (ends()) die();
        result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
        if (!result) put('u', name, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    const char *name = below(from), *other = below(to);
    if (!name || !other) return syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!failed()) {
        if (ends()) die();
        result = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
        if (!result) put('r', name, 0, other, strlen(other));
    }
    pthread_mutex_unlock(&lock);
    return result;
}
