/* What TLS and the kernel alone take: a server of MQTT that accepts, shakes hands (TLS 1.3, client certificates), and answers with
   constants. With the library of Herald's own build. It has no timers, no sessions, no checks and no limits: nothing can be leaner. */
#define _GNU_SOURCE
#include <CNIOBoringSSL.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PUBLISH_BYTES = 300 };

struct peer {
    SSL *tls;
    int file;
};

static SSL_CTX *context;
static int queue;
/* The answer to CONNECT: CONNACK, and the messages that wait. */
static unsigned char connack[16384] = {0x20, 2, 0, 0};
static int connack_bytes = 4;

static void check(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void end(struct peer *peer) {
    SSL_free(peer->tls);
    close(peer->file);
    free(peer);
}

static void take(int listener) {
    int file = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (file < 0) return;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct peer *peer = malloc(sizeof *peer);
    check(peer != NULL, "memory");
    peer->file = file;
    peer->tls = SSL_new(context);
    check(peer->tls != NULL && SSL_set_fd(peer->tls, file), "TLS");
    SSL_set_accept_state(peer->tls);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    check(epoll_ctl(queue, EPOLL_CTL_ADD, file, &event) == 0, "epoll");
}

/* Answers the first packet of what was read; 0 ends the connection. */
static int answer(struct peer *peer, const unsigned char *bytes) {
    unsigned char suback[] = {0x90, 3, bytes[2], bytes[3], 1};
    switch (bytes[0] >> 4) {
    case 1: return SSL_write(peer->tls, connack, connack_bytes) > 0;
    case 4: return 1;
    case 8: return SSL_write(peer->tls, suback, sizeof suback) > 0;
    default: return 0;
    }
}

static void serve(struct peer *peer) {
    unsigned char bytes[2048];
    int count;
    while ((count = SSL_read(peer->tls, bytes, sizeof bytes)) > 0) {
        if (answer(peer, bytes)) continue;
        SSL_shutdown(peer->tls);
        end(peer);
        return;
    }
    if (SSL_get_error(peer->tls, count) != SSL_ERROR_WANT_READ) end(peer);
}

int main(int words_count, char **words) {
    if (words_count != 5) {
        fprintf(stderr, "usage: tls_limit PORT IDENTITY AUTHORITY MESSAGES\n");
        return 2;
    }
    int messages = atoi(words[4]), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    check(messages < 50, "MESSAGES");
    connack[2] = messages > 0;
    for (int message = 1; message <= messages; message++) {
        unsigned char *publish = connack + connack_bytes;
        memset(publish, 'x', PUBLISH_BYTES + 3);
        publish[0] = 0x32, publish[1] = 0x80 | (PUBLISH_BYTES & 0x7F), publish[2] = PUBLISH_BYTES >> 7;
        publish[3] = 0, publish[4] = 1, publish[6] = 0, publish[7] = (unsigned char)message;
        connack_bytes += PUBLISH_BYTES + 3;
    }
    context = SSL_CTX_new(TLS_server_method());
    check(context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION), "TLS");
    check(SSL_CTX_use_certificate_chain_file(context, words[2]), words[2]);
    check(SSL_CTX_use_PrivateKey_file(context, words[2], SSL_FILETYPE_PEM), words[2]);
    check(SSL_CTX_load_verify_locations(context, words[3], NULL), words[3]);
    check(SSL_CTX_set_session_id_context(context, (const uint8_t *)"limit", 5), "TLS");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 4096) == 0, "listen");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[64];
    queue = epoll_create1(0);
    check(epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event) == 0, "epoll");
    for (;;) {
        int count = epoll_wait(queue, events, 64, -1);
        for (int place = 0; place < count; place++) {
            if (events[place].data.ptr) serve(events[place].data.ptr);
            else take(listener);
        }
    }
}
