// What Swift cannot name: these functions are declared with _GNU_SOURCE only.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "CPosix.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

int herald_pipe(int ends[2]) {
#ifdef __linux__
    return pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
#else
    if (pipe(ends) != 0) return errno;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
#endif
}

int herald_spawn(pid_t *child, const char *path, const char *folder, char *const environment[], int standard_input,
                 int standard_output, int standard_error) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    short flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    char *const arguments[] = {(char *)path, NULL};

    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, standard_input, 0);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, standard_output, 1);
    if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, standard_error, 2);
    if (code == 0) code = posix_spawn_file_actions_addchdir_np(&actions, folder);
#ifdef __linux__
    if (code == 0) code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#else
    flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
    sigemptyset(&signals);
    if (code == 0) code = posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    if (code == 0) code = posix_spawnattr_setsigdefault(&attributes, &signals);
    if (code == 0) code = posix_spawnattr_setflags(&attributes, flags);
    if (code == 0) code = posix_spawn(child, path, &actions, &attributes, arguments, environment);
    // A child that another thread has just forked may still have the new file open for writing.
    for (int tries = 0; code == ETXTBSY && tries < 100; tries++) {
        usleep(10000);
        code = posix_spawn(child, path, &actions, &attributes, arguments, environment);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

int herald_adopt_orphans(void) {
#ifdef __linux__
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#else
    errno = ENOSYS;
    return -1;
#endif
}
