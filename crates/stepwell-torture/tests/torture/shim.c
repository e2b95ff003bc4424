/* Intercepts a process's calls on files: counts, fails or records every call on a
 * file whose path contains TORTURE_MARK. For LD_PRELOAD; Linux only.
 *
 *   TORTURE_FAIL=N ERRNO   fail the Nth write, truncate or sync with EIO or ENOSPC
 *   TORTURE_FULL=FILE      while FILE exists, no write makes a file grow (ENOSPC)
 *   TORTURE_REPORT=FILE    append one line per failed call, and the count at the end
 *   TORTURE_TRACE=FILE     append every change, sync, and write to stdout, in order
 *
 * A record of the trace: one letter, then path, bytes and offset as
 * u32 length, path, u32 length, bytes, u64 offset, in the machine's byte order.
 *   W write, T truncate (offset is the length), S sync, C create, M mkdir,
 *   L link (bytes are the new path), R rename (likewise), U unlink, A stdout
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES 4200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *mark, *full, *report;
static long fail_at, calls;
static int fail_errno, trace = -1;

__attribute__((constructor)) static void begin(void) {
    mark = getenv("TORTURE_MARK");
    full = getenv("TORTURE_FULL");
    report = getenv("TORTURE_REPORT");
    const char *fail = getenv("TORTURE_FAIL");
    if (fail) {
        fail_at = strtol(fail, NULL, 10);
        fail_errno = strstr(fail, "ENOSPC") ? ENOSPC : EIO;
    }
    const char *path = getenv("TORTURE_TRACE");
    if (path)
        trace = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

static void append_report(const char *text) {
    int fd = syscall(SYS_openat, AT_FDCWD, report, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        syscall(SYS_write, fd, text, strlen(text));
        syscall(SYS_close, fd);
    }
}

__attribute__((destructor)) static void end(void) {
    if (report) {
        char line[64];
        snprintf(line, sizeof line, "%ld calls\n", calls);
        append_report(line);
    }
}

static int watched(const char *path) { return mark && strstr(path, mark) != NULL; }

/* The path of an open file, if it is watched. */
static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_BYTES - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    return watched(path);
}

static void record(char op, const char *path, const void *bytes, size_t length, uint64_t offset) {
    if (trace < 0)
        return;
    uint32_t a = strlen(path), b = length;
    size_t size = 1 + 4 + a + 4 + b + 8;
    char *whole = malloc(size), *at = whole;
    *at++ = op;
    memcpy(at, &a, 4), at += 4;
    memcpy(at, path, a), at += a;
    memcpy(at, &b, 4), at += 4;
    if (b)
        memcpy(at, bytes, b), at += b;
    memcpy(at, &offset, 8);
    for (size_t done = 0; done < size;) {
        ssize_t n = syscall(SYS_write, trace, whole + done, size - done);
        if (n <= 0)
            abort();
        done += n;
    }
    free(whole);
}

/* Counts a call. Returns whether to fail it, and sets errno if so. */
static int fails(const char *what, const char *path) {
    calls++;
    if (calls != fail_at)
        return 0;
    if (report) {
        char line[PATH_BYTES + 64];
        snprintf(line, sizeof line, "failed %ld %s %s\n", calls, what, path);
        append_report(line);
    }
    errno = fail_errno;
    return 1;
}

static off_t size_of(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_size : 0;
}

/* How many bytes of a write fit: all, unless the disk is full. */
static size_t fits(int fd, size_t length, off_t offset) {
    if (!full || syscall(SYS_faccessat, AT_FDCWD, full, F_OK) != 0)
        return length;
    off_t size = size_of(fd);
    if (offset + (off_t)length <= size)
        return length;
    return offset < size ? (size_t)(size - offset) : 0;
}

static ssize_t do_write(int fd, const void *bytes, size_t length, off_t offset, int at_position) {
    char path[PATH_BYTES];
    if (!path_of(fd, path)) {
        if (fd == 1 && at_position && trace >= 0) {
            pthread_mutex_lock(&lock);
            record('A', "", bytes, length, 0);
            pthread_mutex_unlock(&lock);
        }
        return at_position ? syscall(SYS_write, fd, bytes, length)
                     : syscall(SYS_pwrite64, fd, bytes, length, offset);
    }
    pthread_mutex_lock(&lock);
    ssize_t done = -1;
    if (at_position)
        offset = lseek(fd, 0, SEEK_CUR);
    if (!fails("write", path)) {
        length = fits(fd, length, offset);
        if (length == 0) {
            errno = ENOSPC;
        } else {
            done = at_position ? syscall(SYS_write, fd, bytes, length)
                         : syscall(SYS_pwrite64, fd, bytes, length, offset);
            if (done > 0)
                record('W', path, bytes, done, offset);
        }
    }
    int saved_errno = errno;
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) { return do_write(fd, bytes, length, 0, 1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return do_write(fd, bytes, length, offset, 0);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return do_write(fd, bytes, length, offset, 0);
}

static int do_truncate(int fd, off_t length) {
    char path[PATH_BYTES];
    if (!path_of(fd, path))
        return syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails("truncate", path)) {
        /* Growing a file without writing takes no space. */
        done = syscall(SYS_ftruncate, fd, length);
        if (done == 0)
            record('T', path, NULL, 0, length);
    }
    int saved_errno = errno;
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
    return done;
}

int ftruncate(int fd, off_t length) { return do_truncate(fd, length); }
int ftruncate64(int fd, off64_t length) { return do_truncate(fd, length); }

static int do_sync(int fd, long call) {
    char path[PATH_BYTES];
    if (!path_of(fd, path))
        return syscall(call, fd);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails("sync", path)) {
        /* A recorded run need not reach the disk. */
        done = trace >= 0 ? 0 : syscall(call, fd);
        if (done == 0)
            record('S', path, NULL, 0, 0);
    }
    int saved_errno = errno;
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
    return done;
}

int fsync(int fd) { return do_sync(fd, SYS_fsync); }
int fdatasync(int fd) { return do_sync(fd, SYS_fdatasync); }

static int do_open(int at, const char *path, int flags, mode_t mode) {
    if (trace < 0 || !watched(path) || !(flags & O_CREAT))
        return syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    int was_there = syscall(SYS_faccessat, at, path, F_OK) == 0;
    int fd = syscall(SYS_openat, at, path, flags, mode);
    int saved_errno = errno;
    if (fd >= 0 && !was_there)
        record('C', path, NULL, 0, 0);
    else if (fd >= 0 && (flags & O_TRUNC))
        record('T', path, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = saved_errno;
    return fd;
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    return do_open(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    return do_open(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int at, const char *path, int flags, ...) {
    MODE_OF(flags)
    return do_open(at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
    MODE_OF(flags)
    return do_open(at, path, flags | O_LARGEFILE, mode);
}

/* Makes a call that changes names, and records it if it succeeds. */
#define NAMED(op, path, other, call)                                                               \
    do {                                                                                           \
        pthread_mutex_lock(&lock);                                                                 \
        int done = (call);                                                                         \
        int saved_errno = errno;                                                                   \
        if (done == 0 && watched(path))                                                            \
            record(op, path, other, strlen(other), 0);                                             \
        pthread_mutex_unlock(&lock);                                                               \
        errno = saved_errno;                                                                       \
        return done;                                                                               \
    } while (0)

static const char NOTHING[] = "";

int mkdir(const char *path, mode_t mode) {
    NAMED('M', path, NOTHING, syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int unlink(const char *path) { NAMED('U', path, NOTHING, syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }
int link(const char *from, const char *to) {
    NAMED('L', from, to, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    NAMED('L', from, to, syscall(SYS_linkat, from_at, from, to_at, to, flags));
}
int rename(const char *from, const char *to) {
    NAMED('R', from, to, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
