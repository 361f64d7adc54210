#ifndef SLOW_SYNC_H
#define SLOW_SYNC_H

/// Preloaded into a process (LD_PRELOAD), makes every fsync and fdatasync take longer by the microseconds in this
/// variable, as a slower disk would; the program itself knows nothing of it.
#define SLOW_SYNC_VARIABLE "SLOW_SYNC_MICROSECONDS"

#endif
