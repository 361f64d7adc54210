#ifndef HERALD_CPOSIX_H
#define HERALD_CPOSIX_H

#include <sys/types.h>

/// Makes a pipe whose ends no child inherits.
/// Returns 0, or an errno.
int herald_pipe(int ends[2]);

/// Starts a program without a shell, in a session and process group of its own and in a folder, with three descriptors,
/// no others, no blocked signals, and every signal's default action. Waits for up to a second while its file is busy.
/// Returns 0, or an errno.
int herald_spawn(pid_t *child, const char *path, const char *folder, char *const environment[], int standard_input,
                 int standard_output, int standard_error);

/// Makes this process the parent of its descendants whose parent ends (PR_SET_CHILD_SUBREAPER of Linux).
/// Returns 0, or -1 and sets errno.
int herald_adopt_orphans(void);

/// What Herald needs of `struct stat`, which belongs to a different Swift module from build to build.
struct herald_status {
    unsigned mode;
    long long size;
    unsigned long long device;
    unsigned long long number;
    unsigned user;
    unsigned group;
};

/// Reads the status of a file.
/// Returns 0, or -1 and sets errno.
int herald_status(const char *path, int follows_links, struct herald_status *status);
int herald_status_of_descriptor(int descriptor, struct herald_status *status);

#endif
