/*
 * trace_calls OUT COMMAND ARGS...
 *
 * Runs COMMAND and writes to OUT, one line each, the system calls of all its threads that touch
 * the metadata log's directory or a socket:
 *
 *     begin_ns end_ns thread call result file other data
 *
 * `begin` is before the kernel sees the call and `end` after it is done (monotonic clock, one for
 * all processes). `file` is what /proc shows for the descriptor, or the path. `other` is a second
 * path, or flags, or "-". `data` is what was written, sent or received, in hex, or "-".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 256
#define PIECES 1024

struct thread {
    pid_t tid;
    int stop_to_swallow;
    long call; /* -1: not inside one that is of interest */
    unsigned long args[6];
    long long begin;
    char file[PATH_MAX], other[PATH_MAX];
};

static struct thread threads[THREADS];
static pid_t child;
static FILE *out;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(126);
}

static void forward(int sig)
{
    if (child > 0)
        kill(child, sig);
}

static struct thread *thread_of(pid_t tid)
{
    struct thread *fresh = NULL;
    for (int i = 0; i < THREADS; i++) {
        if (threads[i].tid == tid)
            return &threads[i];
        if (!threads[i].tid && !fresh)
            fresh = &threads[i];
    }
    if (!fresh) {
        fprintf(stderr, "more than %d threads\n", THREADS);
        exit(126);
    }
    fresh->tid = tid;
    fresh->stop_to_swallow = 1; /* each new one begins with a SIGSTOP of the tracer's making */
    fresh->call = -1;
    return fresh;
}

/* Page by page: what follows the text may not be mapped, and the text may go over an edge. */
static void read_text(pid_t tid, unsigned long at, char *text, size_t size)
{
    size_t done = 0;
    while (done < size - 1) {
        size_t part = 4096 - (at + done) % 4096;
        if (part > size - 1 - done)
            part = size - 1 - done;
        struct iovec here = {text + done, part}, there = {(void *)(at + done), part};
        ssize_t got = process_vm_readv(tid, &here, 1, &there, 1, 0);
        if (got <= 0)
            break;
        if (memchr(text + done, 0, got))
            return;
        done += got;
    }
    text[done] = 0;
}

static void file_of(pid_t tid, int fd, char *text)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", tid, fd);
    ssize_t size = readlink(link, text, PATH_MAX - 1);
    text[size < 0 ? 0 : size] = 0;
}

static int of_interest(const char *file)
{
    return strncmp(file, "socket:", 7) == 0 || strstr(file, "__cluster_metadata-0") != NULL;
}

static void print_hex(pid_t tid, unsigned long at, size_t size)
{
    unsigned char *bytes = malloc(size ? size : 1);
    struct iovec here = {bytes, size}, there = {(void *)at, size};
    if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)size)
        fail("process_vm_readv");
    for (size_t i = 0; i < size; i++)
        fprintf(out, "%02x", bytes[i]);
    free(bytes);
}

/* The first `size` bytes of a vector of the tracee's. */
static void print_pieces(pid_t tid, unsigned long at, size_t count, size_t size)
{
    struct iovec pieces[PIECES];
    if (count > PIECES)
        count = PIECES;
    struct iovec here = {pieces, count * sizeof *pieces}, there = {(void *)at, here.iov_len};
    if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len)
        fail("process_vm_readv");
    for (size_t i = 0; i < count && size; i++) {
        size_t part = pieces[i].iov_len < size ? pieces[i].iov_len : size;
        print_hex(tid, (unsigned long)pieces[i].iov_base, part);
        size -= part;
    }
}

static const char *name_of(long call)
{
    switch (call) {
    case SYS_openat: return "openat";
    case SYS_write: return "write";
    case SYS_pwrite64: return "pwrite";
    case SYS_writev: return "writev";
    case SYS_pwritev: return "pwritev";
    case SYS_sendto: return "sendto";
    case SYS_sendmsg: return "sendmsg";
    case SYS_read: return "read";
    case SYS_readv: return "readv";
    case SYS_recvfrom: return "recvfrom";
    case SYS_recvmsg: return "recvmsg";
    case SYS_fsync: return "fsync";
    case SYS_fdatasync: return "fdatasync";
    case SYS_ftruncate: return "ftruncate";
    case SYS_connect: return "connect";
    case SYS_renameat: return "renameat";
    case SYS_renameat2: return "renameat2";
    case SYS_unlinkat: return "unlinkat";
#ifdef SYS_open
    case SYS_open: return "open";
    case SYS_rename: return "rename";
    case SYS_unlink: return "unlink";
#endif
    default: return NULL;
    }
}

static void begin(struct thread *t, const struct ptrace_syscall_info *info)
{
    t->call = -1;
    if (!name_of(info->entry.nr))
        return;
    for (int i = 0; i < 6; i++)
        t->args[i] = info->entry.args[i];
    strcpy(t->other, "-");
    switch (info->entry.nr) {
    case SYS_openat:
        read_text(t->tid, t->args[1], t->file, PATH_MAX);
        snprintf(t->other, PATH_MAX, "%s", t->args[2] & O_CREAT ? "create" : "-");
        break;
    case SYS_unlinkat:
        read_text(t->tid, t->args[1], t->file, PATH_MAX);
        break;
    case SYS_renameat:
    case SYS_renameat2:
        read_text(t->tid, t->args[1], t->file, PATH_MAX);
        read_text(t->tid, t->args[3], t->other, PATH_MAX);
        break;
#ifdef SYS_open
    case SYS_open:
        read_text(t->tid, t->args[0], t->file, PATH_MAX);
        snprintf(t->other, PATH_MAX, "%s", t->args[1] & O_CREAT ? "create" : "-");
        break;
    case SYS_unlink:
        read_text(t->tid, t->args[0], t->file, PATH_MAX);
        break;
    case SYS_rename:
        read_text(t->tid, t->args[0], t->file, PATH_MAX);
        read_text(t->tid, t->args[1], t->other, PATH_MAX);
        break;
#endif
    default:
        file_of(t->tid, (int)t->args[0], t->file);
    }
    if (!of_interest(t->file))
        return;
    t->call = info->entry.nr;
    t->begin = now_ns();
}

static void end(struct thread *t, const struct ptrace_syscall_info *info)
{
    long long at = now_ns(), result = info->exit.rval;
    if (t->call < 0)
        return;
    fprintf(out, "%lld %lld %d %s %lld %s %s ", t->begin, at, t->tid, name_of(t->call), result,
            t->file, t->other);
    if (result > 0) {
        struct msghdr message;
        struct iovec here = {&message, sizeof message}, there = {(void *)t->args[1], sizeof message};
        switch (t->call) {
        case SYS_write:
        case SYS_pwrite64:
        case SYS_sendto:
        case SYS_read:
        case SYS_recvfrom:
            print_hex(t->tid, t->args[1], result);
            break;
        case SYS_writev:
        case SYS_pwritev:
        case SYS_readv:
            print_pieces(t->tid, t->args[1], t->args[2], result);
            break;
        case SYS_sendmsg:
        case SYS_recvmsg:
            if (process_vm_readv(t->tid, &here, 1, &there, 1, 0) != sizeof message)
                fail("process_vm_readv");
            print_pieces(t->tid, (unsigned long)message.msg_iov, message.msg_iovlen, result);
            break;
        default:
            fputc('-', out);
        }
    } else {
        fputc('-', out);
    }
    fputc('\n', out);
    t->call = -1;
}

static void syscall_stop(struct thread *t)
{
    struct ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof info, &info) < 0)
        return; /* killed meanwhile */
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        begin(t, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        end(t, &info);
}

int main(int argc, char **argv)
{
    if (argc < 3 || !(out = fopen(argv[1], "w")))
        fail("trace_calls OUT COMMAND");
    setvbuf(out, NULL, _IOLBF, 1 << 20); /* what was traced is kept when this is killed */
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            fail("ptrace");
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        fail(argv[2]);
    }
    signal(SIGTERM, forward);
    signal(SIGINT, forward);
    int status, code = 0;
    if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
        fail("the command did not stop to be traced");
    thread_of(child)->stop_to_swallow = 0;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options) < 0)
        fail("PTRACE_SETOPTIONS");
    ptrace(PTRACE_SYSCALL, child, 0, 0);
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            break;
        struct thread *t = thread_of(tid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (tid == child)
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            t->tid = 0;
            continue;
        }
        int sig = WSTOPSIG(status), pass = 0;
        if (sig == (SIGTRAP | 0x80))
            syscall_stop(t);
        else if (status >> 16)
            ; /* a new thread or process, or exec */
        else if (sig == SIGSTOP && t->stop_to_swallow)
            t->stop_to_swallow = 0;
        else
            pass = sig;
        ptrace(PTRACE_SYSCALL, tid, 0, pass);
    }
    fclose(out);
    return code;
}
