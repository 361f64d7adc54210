#include "CAllocator.h"

// A service that has become idle gives back what it does not need within seconds, without anybody's next request.
const char *malloc_conf = "background_thread:true,dirty_decay_ms:1000";
