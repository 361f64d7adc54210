#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "CPosix.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

int herald_datagram_socket(int longest_wait) {
    struct timeval wait = {.tv_sec = longest_wait};
    int descriptor = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (descriptor < 0) return -1;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    return descriptor;
}

int herald_send_datagram(int descriptor, const char *address, const void *bytes, size_t count) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    ssize_t sent;
    if (length == 0 || length >= sizeof name.sun_path) return EINVAL;
    memcpy(name.sun_path, address, length);
    // An abstract name begins with a zero byte, and has no such byte at its end.
    if (address[0] == '@') name.sun_path[0] = 0;
    do {
        sent = sendto(descriptor, bytes, count, MSG_NOSIGNAL, (struct sockaddr *)&name,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}
