"""The messages to a service manager (`sd_notify`), with a socket of the test: readiness, reloads, signs of life, the end."""

import os
import signal
import socket
import subprocess
import time

import pytest

from disk_faults import slow_disk
from parties import assert_accepted
from provider import Provider, away_device
from relay import Relay, SQLiteQueue, sending
from service import HERALD, PATIENCE, TOPIC, eventually


class Manager:
    """The socket of a service manager."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address[0] == "@" else address)
        self.socket.settimeout(PATIENCE)
        self.address = address
        #: Every line that came, in order.
        self.lines = []

    def prefix(self, watchdog=None):
        """The words before a command that this manager starts; `watchdog` is in seconds."""
        times = [f"WATCHDOG_USEC={int(watchdog * 1_000_000)}"] if watchdog else []
        return ("env", f"NOTIFY_SOCKET={self.address}", *times)

    def hear(self):
        lines = self.socket.recv(4096).decode().split("\n")
        self.lines += lines
        return lines

    def wait(self, wanted):
        """The next message with such a line."""
        while True:
            lines = self.hear()
            if any(line.startswith(wanted) for line in lines):
                return lines

    def is_silent(self, seconds):
        """Whether no sign of life comes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if "WATCHDOG=1" in self.hear():
                    return False
            except TimeoutError:
                break
            finally:
                self.socket.settimeout(PATIENCE)
        return True

    def wait_for_silence(self, seconds):
        """Waits until the signs of life end."""
        end = time.monotonic() + PATIENCE
        while not self.is_silent(seconds):
            assert time.monotonic() < end, "the signs of life go on"


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    manager = Manager(str(tmp_path / "notify") if request.param == "path" else f"@herald-{os.getpid()}-{tmp_path.name}")
    yield manager
    manager.socket.close()


def test_the_service_tells_its_state(fresh, manager):
    service = fresh(prefix=manager.prefix(watchdog=2)).start()
    ready = manager.wait("READY=1")
    assert manager.lines[0] == "STATUS=starting"
    assert "STATUS=serving: devices 0 connected, notifications 0 waiting" in ready
    before = time.monotonic()
    os.kill(service.pid, signal.SIGHUP)
    _, moment = manager.wait("RELOADING=1")
    assert before <= int(moment.removeprefix("MONOTONIC_USEC=")) / 1e6 <= time.monotonic()
    assert manager.wait("READY=1") == ["READY=1"]
    manager.wait("WATCHDOG=1")
    with Provider(service, service.provider_certificate()) as provider:
        assert_accepted(provider.push(away_device(service).token))
    manager.wait("STATUS=serving: devices 0 connected, notifications 1 waiting")
    assert service.stop() == 0
    manager.wait("STOPPING=1")


@pytest.fixture
def named(tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    yield manager
    manager.socket.close()


def thread(pid, name):
    """The identifier of the first thread whose name begins so."""
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            if file.read().startswith(name):
                return task
    raise AssertionError(f"no thread is called {name}")


class SlowLoop:
    """One event loop that hangs until it is closed."""

    def __init__(self, service):
        call = "epoll_wait,epoll_pwait"
        self._strace = subprocess.Popen(
            ["strace", "-p", thread(service.pid, "NIO-"), "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:delay_enter=600000000"],
            stderr=subprocess.PIPE, text=True,
        )
        assert "attached" in self._strace.stderr.readline()

    def close(self):
        self._strace.send_signal(signal.SIGINT)
        self._strace.wait(timeout=PATIENCE)
        self._strace.stderr.close()


@pytest.mark.parametrize("part", ["store", "event loop"])
def test_a_part_that_hangs_ends_the_signs_of_life(fresh, named, part):
    service = fresh(prefix=named.prefix(watchdog=2)).start()
    token, certificate = away_device(service).token, service.provider_certificate()
    named.wait("WATCHDOG=1")
    fault = slow_disk(service, 600) if part == "store" else SlowLoop(service)
    try:
        if part == "store":
            with Provider(service, certificate) as provider:
                provider.send(token)
                named.wait_for_silence(2)
        else:
            named.wait_for_silence(2)
        eventually(lambda: any("does not answer" in line and part in line for line in service.lines), what="the line in the log")
    finally:
        fault.close()
    named.wait("WATCHDOG=1")


def test_a_long_start_asks_for_time(fresh, named):
    slow = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_enter=2500000:when=1")
    service = fresh(prefix=(*named.prefix(), *slow)).start()
    named.wait("READY=1")
    assert "EXTEND_TIMEOUT_USEC=30000000" in named.lines
    service.close()


def test_the_relay_tells_its_state(shared, named, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", named.address)
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    relay = Relay(SQLiteQueue(tmp_path / "queue.db").url, "--topic", TOPIC, *sending(shared)).start()
    try:
        assert "STATUS=sending" in named.wait("READY=1")
        named.wait("WATCHDOG=1")
        relay.reload()
        named.wait("RELOADING=1")
        named.wait("READY=1")
        named.wait("WATCHDOG=1")
        assert relay.stop() == 0
        named.wait("STOPPING=1")
    finally:
        relay.close()


def test_the_agent_tells_its_state(shared, named):
    path, _ = shared.device()
    agent = subprocess.Popen(
        [
            *named.prefix(watchdog=2), HERALD, "agent", "run", "--identity", path, "--app", TOPIC, "--data", shared.data,
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    try:
        named.wait("READY=1")
        named.wait("STATUS=connected")
        named.wait("WATCHDOG=1")
        agent.terminate()
        named.wait("STOPPING=1")
        assert agent.wait(timeout=PATIENCE) == 0
    finally:
        agent.kill()
        agent.wait(timeout=PATIENCE)
        agent.stderr.close()
