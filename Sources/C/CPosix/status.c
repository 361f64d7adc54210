#include "CPosix.h"

#include <fcntl.h>
#include <sys/stat.h>

static int taken(int result, const struct stat *from, struct herald_status *status) {
    if (result != 0) return result;
    status->mode = from->st_mode;
    status->size = from->st_size;
    status->device = from->st_dev;
    status->number = from->st_ino;
    status->user = from->st_uid;
    status->group = from->st_gid;
    return 0;
}

int herald_status(const char *path, int follows_links, struct herald_status *status) {
    struct stat found;
    return taken(follows_links ? stat(path, &found) : lstat(path, &found), &found, status);
}

int herald_status_of_descriptor(int descriptor, struct herald_status *status) {
    struct stat found;
    return taken(fstat(descriptor, &found), &found, status);
}
