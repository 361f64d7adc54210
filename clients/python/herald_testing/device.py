"""A virtual device: what it receives, and what its user would see."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import plistlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from .errors import HeraldError, HeraldTimeout
from .process import Guarded

#: Seconds that a device waits unless a test says otherwise.
PATIENCE = 10.0
Found = TypeVar("Found")


@dataclass(frozen=True)
class Notification:
    """A notification that has arrived at a device."""

    topic: str
    #: The payload, read as JSON.
    payload: Any
    apns_id: str | None
    push_type: str | None
    priority: int | None
    collapse_id: str | None
    #: The display record: what the user sees (`shown`, `place`, `style`, `title`, `body`, `sound`, `badge`, `because`, …).
    record: dict[str, Any]

    @property
    def shown(self) -> bool:
        """Whether the user sees it."""
        return bool(self.record["shown"])

    @property
    def title(self) -> str | None:
        """The title that the user sees, in the user's language."""
        found: str | None = self.record["title"]
        return found

    @property
    def body(self) -> str | None:
        """The text that the user sees, in the user's language."""
        found: str | None = self.record["body"]
        return found


class Device:
    """A device with a connection of its own to the service. It shows notifications as a phone does."""

    def __init__(
        self, command: Sequence[str], folder: pathlib.Path, log: str, explain: Callable[[str | None], str] = lambda topic: ""
    ) -> None:
        """`explain` says why nothing came for a topic."""
        self._folder = folder
        self._log = log
        self._explain = explain
        self._changed = threading.Condition()
        self._all: list[Notification] = []
        self._fresh: list[Notification] = []
        self._held: dict[str, dict[str, Any]] = {}
        self._tokens: dict[str, str] = {}
        self._refusals: dict[str, str] = {}
        self._removed: set[str] = set()
        self._is_connected = False
        self._has_ended = False
        self._process = Guarded(command, log, self._take)
        try:
            self._wait("connection", PATIENCE * 6, lambda: self._is_connected or None)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the device. Its apps stay registered: what is sent to their tokens waits in vain."""
        self._process.stop()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- Events of the agent ----

    def _take(self, line: str | None) -> None:
        with self._changed:
            if line is None:
                self._has_ended = True
            else:
                self._take_event(json.loads(line))
            self._changed.notify_all()

    def _take_event(self, event: dict[str, Any]) -> None:
        kind, topic = event["event"], event.get("topic", "")
        if kind == "connected":
            self._is_connected = True
        elif kind == "disconnected":
            self._is_connected = False
        elif kind == "token":
            self._tokens[topic] = event["token"]
        elif kind == "refused":
            self._refusals[topic] = event["reason"]
        elif kind == "removed":
            self._removed.add(topic)
        elif kind == "notification" and not event.get("shown_before"):
            if event.get("presentation") is None:
                # The app's service program may still change it.
                self._held[event["apns_id"]] = event
            else:
                self._arrived(event, event["presentation"])
        elif kind == "presented":
            held = self._held.pop(event["apns_id"], None)
            if held is not None:
                self._arrived(held, event["presentation"])

    def _arrived(self, event: dict[str, Any], record: dict[str, Any]) -> None:
        found = Notification(
            event["topic"], event.get("payload"), event.get("apns_id"), event.get("push_type"), event.get("priority"),
            event.get("collapse_id"), record,
        )
        self._all.append(found)
        self._fresh.append(found)

    def _wait(self, what: str, timeout: float, find: Callable[[], Found | None]) -> Found:
        """The first value that `find` returns, now or after an event."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                found = find()
                if found is not None:
                    return found
                if self._has_ended:
                    raise HeraldError(f"the device has stopped: {pathlib.Path(self._log).read_text().strip()}")
                if not self._changed.wait(end - time.monotonic()):
                    raise HeraldTimeout(f"no {what} came within {timeout:g} s")

    # ---- Apps ----

    def install(
        self, app: str | os.PathLike[str], *, allow: Sequence[str] = ("alert", "badge", "sound"), timeout: float = PATIENCE
    ) -> str:
        """Installs an app, and returns its device token.

        `app` is an identifier like `com.example.chat`, or the path of a bundle with texts, sounds and categories. `allow` is
        what its user permits.
        """
        if isinstance(app, os.PathLike) or os.sep in app:
            path = os.path.abspath(app)
            self.perform("install", path=path)
            with open(os.path.join(path, "Info.plist"), "rb") as file:
                topic: str = plistlib.load(file)["CFBundleIdentifier"]
        else:
            topic = app
            self.perform("register", topic=topic)
        self.perform("permit", topic=topic, allow=list(allow))

        def token() -> str | None:
            if topic in self._refusals:
                raise HeraldError(f"the service does not register {topic}: {self._refusals[topic]}")
            return self._tokens.get(topic)

        return self._wait(f"device token for {topic}", timeout, token)

    def remove(self, topic: str) -> None:
        """Removes an app, and waits until the service knows: its device token is dead, and providers get 410."""
        with self._changed:
            self._tokens.pop(topic, None)
            self._removed.discard(topic)
        self.perform("remove", topic=topic)
        self._wait(f"removal of {topic}", PATIENCE, lambda: topic in self._removed or None)

    # ---- Notifications ----

    @property
    def notifications(self) -> list[Notification]:
        """All notifications that have arrived, the oldest first."""
        with self._changed:
            return list(self._all)

    def wait_for(
        self, topic: str | None = None, *, where: Callable[[Notification], bool] | None = None, timeout: float = PATIENCE
    ) -> Notification:
        """The next notification that no call has returned yet: of one app, or one for which `where` is true.

        If none comes, the error says what the service has answered to requests for this device.
        """

        def find() -> Notification | None:
            for found in self._fresh:
                if topic in (None, found.topic) and (where is None or where(found)):
                    self._fresh.remove(found)
                    return found
            return None

        try:
            return self._wait(f"notification{f' for {topic}' if topic else ''}", timeout, find)
        except HeraldTimeout as error:
            raise HeraldTimeout(f"{error}{self._explain(topic)}") from None

    # ---- The user ----

    def set(self, **switches: Any) -> None:
        """Changes switches: `locked`, `languages`, `saving`, `muted`, `focus`, `clock` (seconds ahead), `time_zone`."""
        self.perform("set", **switches)

    @contextlib.contextmanager
    def offline(self) -> Iterator[None]:
        """Has no network while the context lasts, and is connected again after it."""
        self.perform("set", network=False)
        self._wait("end of the connection", PATIENCE, lambda: not self._is_connected or None)
        yield
        self.perform("set", network=True)
        self._wait("connection", PATIENCE, lambda: self._is_connected or None)

    def snapshot(self) -> dict[str, Any]:
        """The device as it is now: apps, visible notifications, switches."""
        found: dict[str, Any] = self.perform("device")["device"]
        return found

    def perform(self, do: str, **members: Any) -> dict[str, Any]:
        """A request to the device's local socket, like `perform("tap", notification="n1")`; its answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            # The system takes 107 bytes of a path; folders may have more.
            here = os.open(self._folder / "run", os.O_RDONLY)
            try:
                connection.connect(f"/proc/self/fd/{here}/agent.sock")
            finally:
                os.close(here)
            connection.sendall(json.dumps({"id": 1, "do": do, **members}).encode() + b"\n")
            with connection.makefile() as answers:
                for line in answers:
                    answer: dict[str, Any] = json.loads(line)
                    if answer.get("id") == 1 and "event" not in answer:
                        if "error" in answer:
                            raise HeraldError(f"{do}: {answer['error']}")
                        return answer
        raise HeraldError(f"{do}: the device has ended")

