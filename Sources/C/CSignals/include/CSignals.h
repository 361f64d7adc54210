#ifndef HERALD_CSIGNALS_H
#define HERALD_CSIGNALS_H

/// Ends the process with one line on standard error and status 1 when a file that is mapped into memory was cut short, or
/// its disk failed (SIGBUS).
///
/// SQLite maps the index of a write-ahead log (`herald.db-shm`). Called after the start of Swift's runtime, which has a
/// handler of its own.
void herald_exit_on_bus_error(void);

#endif
