/* Publishes to a stream with libnats' js_PublishMsgAsync, as `NATSBench publish` does with Herald's client, and prints the same. */
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int failures;

static void failed(jsCtx *js, jsPubAckErr *error, void *closure) {
    (void)js, (void)error, (void)closure;
    failures++;
}

static void check(natsStatus status, const char *what) {
    if (status == NATS_OK) return;
    fprintf(stderr, "%s: %s\n", what, natsStatus_GetText(status));
    exit(1);
}

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count_of_words, char **words) {
    if (count_of_words != 6) {
        fprintf(stderr, "usage: nats_peer URL SUBJECT COUNT WINDOW BYTES\n");
        return 2;
    }
    const char *subject = words[2];
    long count = atol(words[3]), window = atol(words[4]), bytes = atol(words[5]);
    natsConnection *connection = NULL;
    jsCtx *js = NULL;
    jsOptions options;
    char *payload = malloc((size_t)bytes + 1);
    if (!payload) return 1;
    memset(payload, 'x', (size_t)bytes);
    check(natsConnection_ConnectTo(&connection, words[1]), "connect");
    jsOptions_Init(&options);
    options.PublishAsync.MaxPending = window;
    options.PublishAsync.ErrHandler = failed;
    /* A busy server is waited for, as Herald's client does. */
    options.PublishAsync.StallWait = 30000;
    check(natsConnection_JetStream(&js, connection, &options), "JetStream");
    double begin = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long number = 0; number < count; number++) {
        natsMsg *message = NULL;
        check(natsMsg_Create(&message, subject, NULL, payload, (int)bytes), "message");
        check(js_PublishMsgAsync(js, &message, NULL), "publish");
        natsMsg_Destroy(message);
    }
    check(js_PublishAsyncComplete(js, NULL), "complete");
    double seconds = now(CLOCK_MONOTONIC) - begin, spent = now(CLOCK_PROCESS_CPUTIME_ID) - processor;
    if (failures) {
        fprintf(stderr, "%d messages were not stored\n", failures);
        return 1;
    }
    printf("{\"rate\": %f, \"cpu_us\": %f}\n", (double)count / seconds, spent * 1e6 / (double)count);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    nats_Close();
    free(payload);
    return 0;
}
