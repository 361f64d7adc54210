#ifndef HERALD_CSPAWN_H
#define HERALD_CSPAWN_H

#include <sys/types.h>

/// Makes a pipe whose ends no child inherits.
/// Returns 0, or an errno.
int herald_pipe(int ends[2]);

/// Starts a program without a shell, in a session and process group of its own and in a folder, with three descriptors,
/// no others, no blocked signals, and every signal's default action.
/// Returns 0, or an errno.
int herald_spawn(pid_t *child, const char *path, const char *folder, char *const environment[], int standard_input,
                 int standard_output, int standard_error);

#endif
