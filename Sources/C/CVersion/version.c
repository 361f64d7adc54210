#include "CVersion.h"

const char *herald_commit(void) {
    return HERALD_COMMIT;
}
