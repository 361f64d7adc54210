"""The console's page in a real browser, on a made-up service whose answers the test sets and whose requests it records.

The page's files and its policy are those of the binary; `test_console_page.py` has ways through the real service too.
"""

import json
import pathlib
import queue
import re
import socketserver
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler

import console_service
import pytest
from screen_page import PATIENCE

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "Sources"
RESOURCES = SOURCES / "HeraldConsole/Resources"
SHARED = SOURCES / "HeraldWeb/Resources"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = "; ".join((RESOURCES / "content-security-policy.txt").read_text().split("\n")).strip("; ")
VERSION = "0123456789abcdef"
#: The paths of the page, from the route that serves them.
PATHS = re.search(
    r"static let paths = \[(.*?)\]", (SOURCES / "HeraldConsole/Pages/ConsolePages.swift").read_text(), re.S,
)[1]
PAGES = [f"^/{re.sub(':[a-z]+', '[^/]+', path)}$" for path in re.findall(r'"([^"]*)"', PATHS)]


class FakeConsole:
    """Serves the page, and answers its requests from a table: `answers["GET /v1/status"]` is a value or a function."""

    def __init__(self):
        self.answers = console_service.answers()
        self.requests = queue.Queue()
        self.asked = []
        self.is_up = True
        self.violations = []
        self._watchers = set()
        self._lock = threading.Lock()
        self._start(0)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def _start(self, port):
        console = self

        class Handler(Request):
            service = console

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, request, client_address):
                """Ignores connections that a closing browser breaks."""

        self._server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def set_role(self, role, mode="full"):
        self.answers["GET /v1/session"] = {"name": "Ada", "role": role, "mode": mode, "environments": ["production", "sandbox"]}

    def tell(self, kind, data):
        """Sends an event to every page."""
        with self._lock:
            for watcher in self._watchers:
                watcher.put((kind, data))

    def watch(self):
        watcher = queue.Queue()
        with self._lock:
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher):
        with self._lock:
            self._watchers.discard(watcher)

    @property
    def watchers(self):
        with self._lock:
            return len(self._watchers)

    def changed(self, request):
        """The body of the next change with this method and path."""
        while True:
            name, body = self.requests.get(timeout=PATIENCE)
            if name == request:
                return body

    def stop(self):
        self.is_up = False
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            for watcher in self._watchers:
                watcher.put(None)

    def start_again(self):
        self.is_up = True
        self._start(self.port)


class Request(BaseHTTPRequestHandler):
    service = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def parse_request(self):
        if not self.service.is_up:
            self.close_connection = True
            return False
        return super().parse_request()

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", POLICY)
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def json(self, value, status=200):
        self.reply(status, "application/json", json.dumps(value).encode())

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        if path == "/v1/events":
            return self.events()
        if path.startswith("/v1/"):
            return self.answer("GET")
        if path.startswith(f"/assets/{VERSION}/"):
            name = path.rpartition("/")[2]
            file = SHARED / name if (SHARED / name).is_file() else RESOURCES / name
            if file.is_file():
                return self.reply(200, TYPES[file.suffix], file.read_bytes())
        elif any(re.match(page, path) for page in PAGES):
            page = (RESOURCES / "index.html").read_text().replace("{version}", VERSION)
            return self.reply(200, "text/html; charset=utf-8", page.encode())
        return self.json({"error": "there is nothing at this path"}, 404)

    def answer(self, method):
        length = int(self.headers["content-length"] or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        split = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(split.query))
        path = urllib.parse.unquote(split.path)
        if self.headers["herald-console"] != "1":
            return self.json({"error": "the request is not of the console"}, 403)
        if method != "GET" and self.headers["content-type"] != "application/json":
            return self.json({"error": "send JSON"}, 415)
        self.service.asked.append((f"{method} {path}", query, body))
        if method != "GET":
            self.service.requests.put((f"{method} {path}", body))
        for name in (f"{method} {path}", f"{method} {path.rpartition('/')[0]}/*", f"{method} {'/'.join(path.split('/')[:3])}/*"):
            if name in self.service.answers:
                found = self.service.answers[name]
                break
        else:
            return self.json({"error": "there is nothing at this path"}, 404)
        value = found(path, query, body) if callable(found) else found
        if isinstance(value, tuple):
            return self.json(value[1], value[0])
        return self.json(value)

    def do_POST(self):
        return self.answer("POST")

    def do_PUT(self):
        return self.answer("PUT")

    def do_DELETE(self):
        return self.answer("DELETE")

    def events(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        watcher = self.service.watch()
        number = 0
        try:
            self.wfile.write(b'event: status\ndata: {"version": 1}\n\nevent: caught\ndata: {"newest": 0}\n\nevent: counts\ndata: {}\n\n')
            while (event := watcher.get()) is not None:
                kind, data = event
                number += 1
                self.wfile.write(f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode())
        finally:
            self.service.leave(watcher)


@pytest.fixture
def console():
    console = FakeConsole()
    yield console
    console.stop()
