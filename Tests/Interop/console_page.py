"""The console's page in a real browser, on a made-up service whose answers the test sets and whose requests it records.

The page's files and its policy are those of the binary; `test_console_page.py` has ways through the real service too.
"""

import itertools
import json
import pathlib
import queue
import re
import urllib.parse

import console_service
import pytest
from made_up_server import MadeUpRequest, MadeUpServer
from screen_page import PATIENCE

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "Sources"
RESOURCES = SOURCES / "Service/HeraldConsole/Resources"
SHARED = SOURCES / "Shared/HeraldWeb/Resources"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = "; ".join((RESOURCES / "content-security-policy.txt").read_text().split("\n")).strip("; ")
VERSION = "0123456789abcdef"
#: The paths of the page, from the route that serves them.
PATHS = re.search(
    r"static let paths = \[(.*?)\]", (SOURCES / "Service/HeraldConsole/Pages/ConsolePages.swift").read_text(), re.S,
)[1]
PAGES = [f"^/{re.sub(':[a-z]+', '[^/]+', path)}$" for path in re.findall(r'"([^"]*)"', PATHS)]


#: The beginning of every stream of the service.
FIRST_EVENTS = 'event: status\ndata: {"version": 1}\n\nevent: caught\ndata: {"newest": 0}\n\nevent: counts\ndata: {}\n\n'


class FakeConsole(MadeUpServer):
    """Serves the page, and answers its requests from a table: `answers["GET /v1/status"]` is a value or a function."""

    def __init__(self):
        self.answers = console_service.answers()
        self.requests = queue.Queue()
        self.asked = []
        #: The secret of each request, which the page keeps for its origin.
        self.secrets = []
        super().__init__(Request)
        self.url = f"http://127.0.0.1:{self.port}"

    def set_role(self, role, mode="full", drills="admin"):
        self.answers["GET /v1/session"] = {"name": "Ada", "role": role, "mode": mode, "drills": drills, "environments": ["production", "sandbox"]}

    def tell(self, kind, data):
        """Sends an event to every page."""
        self.tell_all((kind, data))

    def changed(self, request):
        """The body of the next change with this method and path."""
        while True:
            name, body = self.requests.get(timeout=PATIENCE)
            if name == request:
                return body


class Request(MadeUpRequest):
    policy = POLICY

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
        self.service.secrets.append(self.headers["herald-console"])
        if self.headers["herald-console"] is None:
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
        numbers = itertools.count(1)
        self.stream(lambda event: f"id: {next(numbers)}\nevent: {event[0]}\ndata: {json.dumps(event[1])}\n\n", FIRST_EVENTS)


@pytest.fixture
def console():
    console = FakeConsole()
    yield console
    console.stop()
