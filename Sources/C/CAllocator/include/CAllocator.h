#ifndef HERALD_CALLOCATOR_H
#define HERALD_CALLOCATOR_H

/// A program that depends on this target is linked against jemalloc, which takes the place of the C library's allocator
/// in the whole process. A notification is made on an event loop and freed on the store's thread: what one thread frees
/// of another's, jemalloc keeps in the thread's cache and gives back many at a time.
///
/// What it is told at the start; the environment variable MALLOC_CONF goes before it (jemalloc(3), "TUNING").
extern const char *malloc_conf;

#endif
