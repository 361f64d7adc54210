"""Starts the real binary on free loopback ports, and stops it again."""

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import pathlib
import queue
import random
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Taken out of the environment: Herald warns of variables that look like its own and are not.
HERALD = pathlib.Path(os.environ.pop("HERALD_BINARY", ROOT / ".build" / "debug" / "herald"))
TOPIC = "com.example.chat"
#: Seconds that anything may take which is bound to come: a busy machine is ten times slower, and pauses for a quarter of a minute.
PATIENCE = 60
TEAM = "TEAM123456"


def herald(*arguments, check=True, prefix=(), **options):
    """Runs one command of the binary to its end."""
    result = subprocess.run(
        [*prefix, str(HERALD), *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, **options
    )
    if check and result.returncode != 0:
        raise AssertionError(f"herald {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stderr}")
    return result


class Service:
    """One `herald serve` on a data folder of its own; `start` and `kill` as often as a test likes."""

    #: Where clients reach it.
    host = "127.0.0.1"

    def __init__(self, data: pathlib.Path, *options, prefix=()):
        self.data = data
        self.options = list(options)
        self.prefix = list(prefix)
        self.process = None
        self.listeners = {}
        self.lines = []
        self._serial = itertools.count(1)

    def start(self, *more):
        command = [
            *self.prefix, str(HERALD), "serve", "--data", str(self.data),
            "--api-port", "0", "--binary-port", "0", "--feedback-port", "0", "--device-port", "0",
            "--activation-port", "0", "--console-port", "0",
            *self.options, *more,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        ready = queue.Queue()

        def read(stream, is_output):
            for line in stream:
                self.lines.append(line.rstrip("\n"))
                if is_output and line.strip() == "ready":
                    ready.put(True)
            if is_output:
                ready.put(False)

        self._readers = [
            threading.Thread(target=read, args=(self.process.stdout, True), daemon=True),
            threading.Thread(target=read, args=(self.process.stderr, False), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        if not ready.get(timeout=PATIENCE):
            code = self.wait()
            raise AssertionError(f"herald serve ended ({code}) before it was ready:\n" + "\n".join(self.lines))
        self.listeners = json.loads((self.data / "run" / "listeners.json").read_text())
        return self

    @property
    def pid(self):
        return self.listeners["pid"]

    def has_device_at(self, port):
        """Whether it still holds a device's connection from a port: established, or closed by the other side only."""
        with contextlib.suppress(OSError):
            return port in open_connections(self.pid, self.listeners["device"])
        return False

    def stop(self, timeout=PATIENCE):
        """Asks it to stop, as an operator does, and returns its exit code."""
        if self.process and self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        return self.wait(timeout) if self.process else None

    def wait(self, timeout=PATIENCE):
        """Its exit code, when all that it said has been read."""
        code = self.process.wait(timeout=timeout)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        return code

    def kill(self):
        """Ends it as a crash does."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=PATIENCE)

    @property
    def ca(self):
        return self.data / "ca.pem"

    def _file(self, stem):
        return self.data.parent / f"{self.data.name}-{stem}-{next(self._serial)}.pem"

    def provider_certificate(self, *topics, environment=None):
        """A provider's certificate, chain and key in one PEM file."""
        path = self._file("provider")
        options = [part for topic in (topics or (TOPIC,)) for part in ("--topic", topic)]
        if environment:
            options += ["--environment", environment]
        herald("provider", "certificate", "--data", self.data, *options, "--out", path)
        return path

    def provider_key(self, *topics, team=TEAM, environment=None):
        """A provider token key: (path of the .p8 file, key identifier, team)."""
        folder = self.data.parent / f"{self.data.name}-keys"
        folder.mkdir(exist_ok=True)
        before = set(folder.iterdir())
        options = [part for topic in topics for part in ("--topic", topic)]
        if environment:
            options += ["--environment", environment]
        herald("provider", "key", "--data", self.data, "--team", team, *options, "--out", folder)
        (path,) = set(folder.iterdir()) - before
        return path, path.stem.removeprefix("AuthKey_"), team

    def device(self, name="device"):
        """An enrolled device: (path of its PEM file, its identifier)."""
        path = self._file("device")
        result = herald("device", "enroll", "--data", self.data, "--name", name, "--out", path, "--json")
        return path, json.loads(result.stdout)["id"]

    def journal(self, *query):
        """The journal's answer, as the command gives it."""
        return json.loads(herald("journal", "--data", self.data, *query, "--json", check=False).stdout)


def tcp_rows(pid):
    """Local port, remote port, state, inode and local address of each TCP socket over IPv4 in a process's network."""
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        next(table)
        for line in table:
            columns = line.split()
            local, remote = (int(columns[index].split(":")[1], 16) for index in (1, 2))
            address = socket.inet_ntoa(bytes.fromhex(columns[1].split(":")[0])[::-1])
            yield local, remote, columns[3], columns[9], address


def open_connections(pid, listener):
    """The remote ports of the connections to a listener in a process's network that the listener has not closed."""
    return [remote for local, remote, state, _, _ in tcp_rows(pid) if local == listener and state in ("01", "08")]


#: The ports that `free_port` gives, those of each test process in turn. The system gives others from the range above them.
_ports = itertools.count(int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 12 * 1_000 + random.randrange(500))


def free_port():
    """A port of the loopback on which nobody listens, and which no other test has got."""
    for port in itertools.islice(_ports, 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", 20_000 + port % 12_000)):
            return 20_000 + port % 12_000
    raise AssertionError("no free port")


def once_within(seconds, attempt, tries=5):
    """Asserts that an attempt, which returns how long it took, takes less at least once.

    For a bound that tells two behaviours apart: a machine that pauses misses it now and then, and the wrong behaviour always.
    """
    times = []
    while not times or times[-1] >= seconds:
        assert len(times) < tries, f"never within {seconds} s, but after {times}"
        times.append(attempt())


def eventually(condition, timeout=PATIENCE, what="the condition"):
    """Waits until a condition of another process holds, where no event announces it."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)  # pace: how often it is asked
    raise AssertionError(f"{what} did not come about within {timeout} s")


async def eventually_async(condition, timeout=PATIENCE, what="the condition"):
    """Waits as `eventually` does; the condition may be a coroutine function."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(0.02)  # pace: how often it is asked
    raise AssertionError(f"{what} did not come about within {timeout} s")
