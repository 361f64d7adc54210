"""A made-up server for the tests of a page: it answers, tells every open page what happens, goes away and comes back."""

import queue
import socketserver
import threading
from http.server import BaseHTTPRequestHandler

from service import free_port


class MadeUpServer:
    """A server on a free port of the loopback; `handler` is a `MadeUpRequest`, whose `service` is this."""

    def __init__(self, handler):
        self.is_up = True
        self._handler = type("Handler", (handler,), {"service": self})
        self._watchers = set()
        self._lock = threading.Lock()
        # It is listened on again after an end: the system gives nobody else this port meanwhile.
        self.port = free_port()
        self._start(self.port)

    def _start(self, port):
        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, request, client_address):
                """Ignores connections that a closing browser breaks."""

        self._server = Server(("127.0.0.1", port), self._handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def greeting(self):
        """The events that a page gets first."""
        return []

    def watch(self):
        """A queue of what a page is told."""
        watcher = queue.Queue()
        with self._lock:
            for event in self.greeting():
                watcher.put(event)
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher):
        with self._lock:
            self._watchers.discard(watcher)

    @property
    def watchers(self):
        with self._lock:
            return len(self._watchers)

    def tell_all(self, event):
        with self._lock:
            for watcher in self._watchers:
                watcher.put(event)

    def stop(self):
        """Goes away, and disconnects who watches."""
        self.is_up = False
        self._server.shutdown()
        self._server.server_close()
        self.tell_all(None)

    def start_again(self):
        self.is_up = True
        self._start(self.port)


class MadeUpRequest(BaseHTTPRequestHandler):
    """A request to a made-up server, which answers with the page's policy for contents."""

    service = None
    policy = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def parse_request(self):
        # A connection that the browser kept ends with the server that it was to.
        if not self.service.is_up:
            self.close_connection = True
            return False
        return super().parse_request()

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", self.policy)
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def stream(self, written, first=": hello\n\n"):
        """Sends the first text, and events, as `written` writes each, until the server stops or the browser leaves."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        watcher = self.service.watch()
        try:
            self.wfile.write(first.encode())
            while (event := watcher.get()) is not None:
                self.wfile.write(written(event).encode())
        finally:
            self.service.leave(watcher)
