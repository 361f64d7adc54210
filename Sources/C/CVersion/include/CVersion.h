#ifndef HERALD_CVERSION_H
#define HERALD_CVERSION_H

/// The commit of this build and its date, `3f605882a643, 2026-11-23`, or `commit unknown`.
///
/// A commit with `+` at its end is that of a changed working tree.
const char *herald_commit(void);

#endif
