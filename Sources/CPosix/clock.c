#include "CPosix.h"

#ifdef __linux__
#include <sys/timex.h>
#endif

int herald_clock_is_synchronized(void) {
#ifdef __linux__
    struct timex state = {.modes = 0};
    int result = adjtimex(&state);
    return result < 0 ? -1 : result != TIME_ERROR;
#else
    return -1;
#endif
}
