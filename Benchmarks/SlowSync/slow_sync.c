#define _GNU_SOURCE
#include "slow_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct timespec delay;

__attribute__((constructor)) static void read_delay(void) {
    const char *text = getenv(SLOW_SYNC_VARIABLE);
    long microseconds = text ? strtol(text, NULL, 10) : 0;
    if (microseconds <= 0) return;
    delay.tv_sec = microseconds / 1000000;
    delay.tv_nsec = microseconds % 1000000 * 1000;
}

static void wait_for_disk(void) {
    int kept = errno;
    struct timespec left = delay;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
    errno = kept;
}

int fsync(int file) {
    int result = (int)syscall(SYS_fsync, file);
    wait_for_disk();
    return result;
}

int fdatasync(int file) {
    int result = (int)syscall(SYS_fdatasync, file);
    wait_for_disk();
    return result;
}
