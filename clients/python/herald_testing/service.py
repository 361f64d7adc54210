"""A running service of a test."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import queue
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import apple, binary
from .caught import KEPT, Caught, Inbox
from .device import Device
from .errors import HeraldError
from .process import Guarded, environment

#: Seconds that something may take which is bound to come.
PATIENCE = 60.0
#: Seconds after which a drill ends whose process has died, and between renewals of those that live.
LEASE, RENEWAL = 60, 10.0


@dataclass(frozen=True)
class ProviderKey:
    """A key with which a provider signs its tokens."""

    #: The `.p8` file.
    path: pathlib.Path
    #: The key's identifier (`kid`), and the team's (`iss`).
    key_id: str
    team_id: str

    @property
    def pem(self) -> str:
        """The private key (PKCS#8, PEM)."""
        return self.path.read_text()


@dataclass(frozen=True)
class Answer:
    """The service's answer to a notification."""

    status: int
    apns_id: str | None
    #: The reason of a refusal, like `BadDeviceToken`.
    reason: str | None
    #: What became of it, in words.
    explanation: str | None


class Herald:
    """A service on free ports of the loopback, with a data folder that goes with it.

    Its attributes say where it is:

    - `host`: the name of all listeners, which the certificate has;
    - `api_port`, `binary_port`, `feedback_port`: for providers;
    - `device_port`, `activation_port`: for devices;
    - `console_port`: for operators, on 127.0.0.1, without TLS;
    - `ca`: the file with the authority of the certificate;
    - `data`: the data folder.
    """

    host = "localhost"

    def __init__(self, *options: str, binary_path: str | os.PathLike[str] | None = None) -> None:
        """Starts `herald serve` with further options, and waits until it is ready."""
        self._binary = binary.find(binary_path)
        # The path of a Unix socket has 103 bytes at most, and folders of tests are longer.
        parent = None if len(tempfile.gettempdir()) < 60 else "/tmp"
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="herald-", dir=parent))
        self.data = self._folder / "data"
        self.ca = self.data / "ca.pem"
        self._serial = 0
        self._has_apples_names = False
        self._keys: dict[tuple[str, tuple[str, ...]], ProviderKey] = {}
        try:
            self._start(options)
        except BaseException:
            self.stop()
            raise
        listeners = json.loads((self.data / "run" / "listeners.json").read_text())
        self.api_port: int = listeners["api"]
        self.binary_port: int = listeners["binary"]
        self.feedback_port: int = listeners["feedback"]
        self.device_port: int = listeners["device"]
        self.activation_port: int = listeners["activation"]
        self.console_port: int = listeners["console"]

    _process: Guarded | None = None

    def _start(self, options: tuple[str, ...]) -> None:
        # Both at once: the version costs no time then.
        version = subprocess.Popen(
            [self._binary, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(),
        )
        ports = [part for name in ("api", "binary", "feedback", "device", "activation", "console") for part in (f"--{name}-port", "0")]
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        command = [self._binary, "serve", "--data", str(self.data), "--catch", "all", "--payload-drills", *ports, *options]
        self._process = Guarded(command, str(self._folder / "serve.log"), lines.put)
        line: str | None = ""
        while line is not None and line != "ready":
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise HeraldError(f"`herald serve` is not ready after {PATIENCE:.0f} s: {self.log}") from None
        binary.check_version(self._binary, version.communicate()[0])
        if line is None:
            raise HeraldError(f"`herald serve` ended before it was ready: {self.log}")

    @property
    def log(self) -> str:
        """The log of the service."""
        with contextlib.suppress(OSError):
            return (self._folder / "serve.log").read_text().strip()
        return ""

    def stop(self) -> None:
        """Stops the service, and deletes its folder."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Herald:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _path(self, name: str) -> pathlib.Path:
        self._serial += 1
        return self._folder / f"{self._serial}-{name}"

    # ---- Commands ----

    def run(self, *command: str | os.PathLike[str] | float, stdin: str | None = None) -> str:
        """Runs a command of `herald` on this service, like `run("journal", apns_id)`; what it prints."""
        result = self._run(*command, stdin=stdin)
        if result.returncode != 0:
            words = result.stderr.strip() or result.stdout.strip()
            raise HeraldError(f"`herald {' '.join(map(str, command))}` failed with status {result.returncode}: {words}")
        return result.stdout

    def _run(self, *command: str | os.PathLike[str] | float, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._binary, *map(str, command), "--data", str(self.data)],
            input=stdin or "", capture_output=True, text=True, env=environment(), timeout=PATIENCE,
        )

    @property
    def variables(self) -> dict[str, str]:
        """The addresses as environment variables, like `herald status --env`: for a process of its own."""
        words = shlex.split(self.run("status", "--env"))
        return dict(word.split("=", 1) for word in words)

    def journal(self, apns_id: str) -> list[dict[str, Any]]:
        """What became of a notification: the lines of the journal, oldest first."""
        found: list[dict[str, Any]] = json.loads(self._run("journal", apns_id, "--json").stdout)
        return found

    def advance(self, seconds: float) -> None:
        """Moves the service's clock ahead. Only a service with the option `--clock adjustable` can: the fixture `own_herald`."""
        self.run("clock", "advance", f"{seconds:.0f}s")

    @contextlib.contextmanager
    def drill(self, kind: str, *options: str | float) -> Iterator[int]:
        """Has failures while the context lasts: `with herald.drill("refuse", "--reason", "TooManyRequests", "--first", 2):`.

        The kinds and options are those of `herald drill start`. The value is the drill's number. Without `--for` it lasts as long as
        the context, also if the clock is moved; if this process dies, it ends within a minute.
        """
        is_lease = not any(str(option).partition("=")[0] in ("--for", "--lease") for option in options)
        lease = ("--lease", f"{LEASE}s") if is_lease else ()
        number: int = json.loads(self.run("drill", "start", kind, *options, *lease, "--json"))["id"]
        over = threading.Event()

        def renew() -> None:
            while not over.wait(RENEWAL):
                self._run("drill", "renew", number)

        renewal = threading.Thread(target=renew, daemon=True)
        if is_lease:
            renewal.start()
        try:
            yield number
        finally:
            over.set()
            if is_lease:
                renewal.join()
            self._run("drill", "stop", number)

    # ---- Providers ----

    def provider_key(self, *topics: str, team: str = "TEAM000001") -> ProviderKey:
        """A key for provider tokens: for these topics, or for all apps. The same arguments give the same key."""
        known = self._keys.get((team, topics))
        if known is not None:
            return known
        folder = self._path("key")
        options = [part for topic in topics for part in ("--topic", topic)]
        self.run("provider", "key", "--team", team, *options, "--out", folder)
        (path,) = folder.iterdir()
        key = ProviderKey(path, path.stem.partition("_")[2], team)
        self._keys[team, topics] = key
        return key

    def provider_certificate(self, *topics: str) -> pathlib.Path:
        """A file with a provider's certificate for these topics, its chain and its private key."""
        path = self._path("provider.pem")
        self.run("provider", "certificate", *(part for topic in topics for part in ("--topic", topic)), "--out", path)
        return path

    def send(self, token: str, topic: str, payload: Any = None, *, alert: str | None = None, **headers: str | float) -> Answer:
        """Sends a notification, as a provider of its own: for tests of an app or a device.

        The payload is an object for JSON, or `alert` its text. Headers are `push_type`, `priority`, `expiration`, `collapse_id`
        and `id`.
        """
        if (payload is None) == (alert is None):
            raise TypeError("give either a payload or an alert")
        body = json.dumps({"aps": {"alert": alert}} if payload is None else payload)
        key = self.provider_key()
        options = [part for name, value in headers.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        result = self._run(
            "send", token, "--topic", topic, "--key", key.path, "--key-id", key.key_id, "--team", key.team_id, "--payload", "-",
            "--json", *options, stdin=body,
        )
        try:
            answer = json.loads(result.stdout)
        except ValueError:
            raise HeraldError(f"`herald send` failed: {result.stderr.strip()}") from None
        return Answer(answer["status"], answer.get("apns_id"), answer.get("reason"), answer.get("explanation"))

    def caught(
        self, query: str = "", *, count: int = 1, until: str | None = None, wait: float = 10, limit: int = KEPT
    ) -> list[Caught]:
        """The requests that providers have sent and a query finds, newest first: `caught("tag:login-test -status:200")`.

        It waits until `count` have come, and one of them matches the query `until`, too, like `until="status:200"`. If they do not
        come within `wait` seconds, it fails with `HeraldTimeout`, which lists those that came. With `wait=0` the list is what there
        is. `limit` is the most that it returns.

        Keys of a query are id, tag, topic, device, provider, status and reason. A test that others run beside gives its requests a
        tag of its own: the field `herald-tag`, or `{"herald": {"tag": …}}` in the payload.
        """
        return Inbox(self.console_port, self.data).read(query, count, until, wait, limit)

    def caught_exactly(self, count: int, query: str = "", *, wait: float = 10, quiet: float = 0.5) -> list[Caught]:
        """Waits until `count` requests have come, and fails if a further one comes within `quiet` seconds: nothing is sent twice."""
        return Inbox(self.console_port, self.data).exactly(count, query, wait, quiet)

    def caught_nothing(self, query: str = "", *, within: float = 1) -> None:
        """Fails if a request has come, or comes within so many seconds."""
        Inbox(self.console_port, self.data).exactly(0, query, 0, within)

    def clear_caught(self, query: str = "") -> int:
        """Forgets the requests that a query finds; their number."""
        return Inbox(self.console_port, self.data).clear(query)

    # ---- Clients that know Apple's names only ----

    @contextlib.contextmanager
    def as_apple(self) -> Iterator[None]:
        """Leads connections to Apple's push services here while the context lasts: of this process, and of Python processes that
        it starts meanwhile.

        Names are resolved by `socket.getaddrinfo`, as asyncio, httpx and most clients do, or by uvloop. Certificates are trusted by
        SSL_CERT_FILE, and by Python's SSL contexts that were made before.
        """
        if not self._has_apples_names:
            self.run("init", "--as-apple")
            self._has_apples_names = True
        ports = {"api": self.api_port, "gateway": self.binary_port, "feedback": self.feedback_port}
        with apple.names(ports, self.ca):
            yield

    # ---- Devices ----

    def device(self) -> Device:
        """A virtual device of this service, connected. Use it as a context, or `close` it."""
        identity = self._path("device.pem")
        enrolled = json.loads(self.run("device", "enroll", "--name", "test", "--out", identity, "--json"))
        folder = self._path("device")
        command = [
            self._binary, "agent", "run", "--identity", str(identity), "--folder", str(folder), "--json",
            "--service", self.host, "--device-port", str(self.device_port), "--ca", str(self.ca),
        ]
        device: str = enrolled["id"]
        begin = datetime.datetime.now(datetime.timezone.utc)
        return Device(command, folder, str(self._path("agent.log")), lambda topic: self._reasons(device, topic, begin))

    def _reasons(self, device: str, topic: str | None, begin: datetime.datetime) -> str:
        """Why nothing came to a device, as far as the service knows: the newest requests for it, or for nobody since it began."""
        try:
            caught = Inbox(self.console_port, self.data).look("", 1, None, 0, KEPT).items
        except (OSError, HeraldError):
            return "; the service does not answer"
        found = [
            each for each in caught
            if each.device == device or not each.device and each.time >= begin and topic in (None, each.topic)
        ]
        if not found:
            return "; no request for it came to the service"
        return "; the newest requests for it:" + "".join(f"\n  {each}{self._outcome(each)}" for each in found[:3])

    def _outcome(self, request: Caught) -> str:
        if request.status != 200 or request.apns_id is None:
            return f" ({request.explanation})" if request.explanation else ""
        lines = self.journal(request.apns_id)
        return f" ({' '.join(filter(None, [lines[-1]['state'], lines[-1].get('reason')]))})" if lines else ""
