#include "CSignals.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void ignore(int number) { (void)number; }

static void bus_error(int number) {
    static const char line[] =
        "herald: a database file was cut short while it was in use (its -shm file, perhaps), or its disk failed: find out "
        "what changes the files, then start Herald again; what it accepted is in the database\n";
    (void)number;
    // A reader of the log that has stalled must not keep the process.
    struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written = poll(&log, 1, 0) == 1 ? write(STDERR_FILENO, line, sizeof line - 1) : 0;
    (void)written;
    _exit(1);
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void herald_exit_on_bus_error(void) { handle(SIGBUS, bus_error); }

/// SIGHUP means "reload" to the two daemons. Swift code traps it only tenths of a second after the start, and until then the
/// signal would end the process. Nothing is lost: they read their configuration after they have trapped it.
///
/// The other commands end with their terminal. A handler and not SIG_IGN, which programs that Herald starts would inherit.
///
/// Only the C library of GNU and that of macOS pass the arguments to it.
#if defined(__GLIBC__) || defined(__APPLE__)
#ifdef __APPLE__
__attribute__((constructor))
#endif
static void ignore_hangups(int count, char **arguments) {
    if (count < 2) return;
    int serves = strcmp(arguments[1], "serve") == 0;
    int relays = count > 2 && strcmp(arguments[1], "relay") == 0 && strcmp(arguments[2], "run") == 0;
    if (serves || relays) handle(SIGHUP, ignore);
}

#ifdef __GLIBC__
// Before the constructors of the libraries, which take most of the time.
__attribute__((section(".preinit_array"), used)) static void (*const before_all)(int, char **) = ignore_hangups;
#endif
#endif
