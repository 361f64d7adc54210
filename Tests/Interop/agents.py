"""`herald agent` as a device with a folder, and its local socket."""

import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import threading
import uuid

import pytest

from parties import assert_accepted, new_id
from provider import Provider
from service import HERALD, PATIENCE, eventually, herald

# One of the payloads is nested two thousand levels deep.
sys.setrecursionlimit(10_000)
MONOPOLY = pathlib.Path(__file__).parent.parent / "Payloads" / "Monopoly.app"


class Agent:
    """One `herald agent run --json` on a folder of its own; `start` and `kill` as often as a test likes."""

    def __init__(self, service, folder, identity):
        self.service = service
        self.folder = folder
        self.identity = identity
        self.process = None
        #: The words before the command.
        self.prefix = ()

    def start(self, *options):
        return self._start(
            [
                *self.prefix, HERALD, "agent", "run", "--identity", self.identity, "--folder", self.folder, "--json",
                "--service", "127.0.0.1", "--device-port", str(self.service.listeners['device']), "--ca", self.service.ca, *map(str, options),
            ]
        )

    def _start(self, command):
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        )
        self.lines = queue.Queue()
        self.passed = []
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()
        return self

    @staticmethod
    def _read(process, lines):
        for line in process.stdout:
            lines.put(json.loads(line))
        lines.put(None)

    def next(self, event, **members):
        """The first line of that event, with those members."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            assert line is not None, f"the agent ended: {self.process.stderr.read()}"
            self.passed.append(line)
            if line["event"] == event and all(line.get(name) == value for name, value in members.items()):
                return line

    def token(self, topic):
        return self.next("token", topic=topic)["token"]

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=PATIENCE)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def command(self, *arguments, check=True):
        return herald("agent", *arguments, "--folder", self.folder, check=check)

    def shown(self, id, wait=PATIENCE):
        """The display record, as the command prints it."""
        return json.loads(self.command("shown", id, "--wait", wait, "--json").stdout)

    def show(self):
        return json.loads(self.command("show", "--json").stdout)


class Local:
    """A connection to the agent's local socket."""

    def __init__(self, folder):
        # Its file is there a moment before anybody listens.
        self.socket = eventually(lambda: self._connected(folder), what="the agent's socket")
        self.file = self.socket.makefile("rw")
        self.serial = 0
        self.events = []

    @staticmethod
    def _connected(folder):
        """A connection; None while nobody listens."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        # The system takes 107 bytes of a path, and folders of tests are longer.
        here = os.open(folder / "run", os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{here}/agent.sock")
        except ConnectionRefusedError:
            connection.close()
            return None
        finally:
            os.close(here)
        return connection

    def ask(self, do, **members):
        """The answer; events that come before it are kept."""
        self.serial += 1
        self.file.write(json.dumps({"id": self.serial, "do": do, **members}) + "\n")
        self.file.flush()
        while True:
            line = json.loads(self.file.readline())
            if line.get("id") == self.serial and "event" not in line:
                return line
            self.events.append(line)

    def event(self, name):
        while True:
            for index, line in enumerate(self.events):
                if line.get("event") == name:
                    return self.events.pop(index)
            line = self.file.readline()
            assert line, "the agent closed the connection"
            self.events.append(json.loads(line))

    def close(self):
        self.file.close()
        self.socket.close()


def curl(service, certificate, token, payload, **fields):
    """Sends a notification as a provider does, with fields like `push_type="background"`; the apns-id that it chose."""
    id = str(uuid.uuid4())
    fields = {"push_type": "alert", "id": id, **fields}
    port = service.listeners["api"]
    headers = [part for name, value in fields.items() for part in ("--header", f"apns-{name.replace('_', '-')}: {value}")]
    result = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--http2", "--cacert", service.ca, "--cert", certificate, *headers,
            "--data-binary", "@-", "--write-out", "%{http_code}", "--resolve", f"localhost:{port}:127.0.0.1",
            f"https://localhost:{port}/3/device/{token}",
        ],
        input=payload, capture_output=True, timeout=PATIENCE,
    )
    assert result.stdout == b"200", result.stdout + result.stderr
    return id


def make_bundle(folder, identifier, programs=(), **plist):
    """An app's bundle with shell scripts as programs."""
    import plistlib

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Info.plist").write_bytes(plistlib.dumps({"CFBundleIdentifier": identifier, **plist}))
    for name, script in dict(programs).items():
        path = folder / "Programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return folder


@pytest.fixture
def push(shared, parties):
    """Sends a payload to a token, and returns the identifier of the notification, which was accepted."""
    with Provider(shared, parties.certificate) as provider:

        def send(token, payload, **options):
            id = new_id()
            assert_accepted(provider.push(token, payload, id=id, **options), id)
            return id

        yield send
