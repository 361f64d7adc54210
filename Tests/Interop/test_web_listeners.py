"""Strangers at the ports for people: console, relay API and screen. They send requests and read no answer."""

import contextlib
import http.client
import json
import socket
import subprocess

import pytest

from agents import Agent
from relay import Relay, SQLiteQueue, sending
from service import PATIENCE, TOPIC
from test_listener_limits import SCARCE

STRANGERS = 200
#: So few that the strangers would take all of them.
FEW = ("prlimit", "--nofile=64:64")


@contextlib.contextmanager
def strangers(port, path):
    """Connections that have sent as many requests as the system takes, and read nothing."""
    with contextlib.ExitStack() as stack:
        request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode() * 500
        for number in range(STRANGERS):
            stranger = stack.enter_context(socket.socket())
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stranger.bind((f"127.0.1.{number % 4 + 1}", 0))
            stranger.settimeout(PATIENCE)
            stranger.connect(("127.0.0.1", port))
            stranger.setblocking(False)
            # Some are closed already, to make way.
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while True:
                    stranger.send(request)
        yield


@contextlib.contextmanager
def unfinished(port, path):
    """Connections, many more than there are places, that have sent a request but for the end of its body."""
    with contextlib.ExitStack() as stack:
        for number in range(STRANGERS):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE, (f"127.0.1.{number % 200 + 1}", 0)))
            with contextlib.suppress(ConnectionError):
                stranger.sendall((
                    f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
                ).encode())
        yield


def status(port, path, token=None):
    """The status of an answer on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def console(fresh):
    service = fresh(prefix=("prlimit", f"--nofile={SCARCE}:{SCARCE}")).start()
    token = (service.data / "run" / "admin.token").read_text().strip()
    return service.listeners["console"], "/openapi.yaml", [("/health", None), ("/metrics", None), ("/v1/devices", token)]


@pytest.fixture
def relay(shared, tmp_path):
    relay = Relay(
        SQLiteQueue(tmp_path / "queue.db").url, "--topic", TOPIC,
        *sending(shared, "--api-token", tmp_path / "api.token"),
    )
    relay.prefix = FEW
    relay.start()
    token = (tmp_path / "api.token").read_text().strip()
    yield relay.port, "/openapi.yaml", [("/health", None), ("/metrics", None), ("/v1/status", token)]
    relay.close()


@pytest.fixture
def screen(shared, tmp_path):
    agent = Agent(shared, tmp_path / "agent", shared.device("watched")[0])
    agent.prefix = FEW
    agent.start("--screen", "0")
    port = int(agent.next("screen")["url"].rsplit(":", 1)[1].strip("/"))
    yield port, "/", [("/", None), ("/api/shown", None)]
    agent.close()


@pytest.mark.parametrize("listener", ["console", "relay", "screen"])
def test_strangers_who_read_nothing_keep_nobody_out(listener, request):
    port, large, wanted = request.getfixturevalue(listener)
    with strangers(port, large):
        for path, token in wanted * 5:
            assert status(port, path, token) == 200, path


@pytest.mark.parametrize("listener, path", [("console", "/v1/session"), ("relay", "/v1/pushes"), ("screen", "/api/device")])
def test_strangers_whose_requests_do_not_end_keep_nobody_out(listener, path, request):
    port, _, wanted = request.getfixturevalue(listener)
    with unfinished(port, path):
        for each, token in wanted * 5:
            assert status(port, each, token) == 200, each


def test_a_request_to_change_the_protocol_is_answered_and_the_next_too(fresh):
    port = fresh().start().listeners["console"]
    command = ["curl", "--silent", "--fail", "--max-time", str(PATIENCE), "--http2", "--write-out", "%{http_code} %{http_version}\n"]
    url = f"http://localhost:{port}/health/live"
    answers = subprocess.run([*command, url, "--next", *command[1:], url], capture_output=True, text=True).stdout
    assert answers.count("200 1.1\n") == 2, answers
