"""Strangers at the ports for people: console, relay API and screen. They send requests and read no answer."""

import contextlib
import http.client
import json
import socket

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
