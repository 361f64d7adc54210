"""Requests of providers that the service has caught, with their payloads and answers."""

from __future__ import annotations

import datetime
import json
import pathlib
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import HeraldError, HeraldTimeout, HeraldUnexpected

#: The longest wait in one request, in seconds.
_LONGEST_WAIT = 60.0
#: The most requests that the service keeps.
KEPT = 1000


@dataclass(frozen=True)
class Caught:
    """A request of a provider, whether the service has accepted it or not."""

    #: The status of the answer; at the binary interface that of the error response, 0 for none; None without an answer.
    status: int | None
    #: The reason of a refusal, and its explanation.
    reason: str | None
    explanation: str | None
    #: `apns-id` of the answer.
    apns_id: str | None
    topic: str
    #: The identifier of the device; empty if the token is of none, and for a broadcast.
    device: str
    #: The fields of the header, without `authorization`.
    headers: Mapping[str, str]
    #: The payload as it was sent.
    text: str
    tag: str | None
    #: When the request came, and when it was answered: None without an answer.
    time: datetime.datetime
    answered: datetime.datetime | None
    #: `retry-after` of the answer, in seconds.
    retry_after: int | None

    @property
    def payload(self) -> Any:
        """The payload, read as JSON."""
        return json.loads(self.text)

    def __str__(self) -> str:
        answer = "no answer" if self.status is None else f"{self.status} {self.reason or ''}".strip()
        return f"{self.time:%H:%M:%S.%f} {self.topic or 'no topic'}: {answer}"


class Inbox:
    """The console's routes `/v1/caught`."""

    def __init__(self, port: int, data: pathlib.Path) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/caught?"
        self._token = (data / "run" / "admin.token").read_text().strip()

    def read(self, query: str, count: int, until: str | None, wait: float, limit: int) -> list[Caught]:
        """Matching requests, newest first; fails if fewer came than `count`, or none for `until`, unless `wait` is 0."""
        found = self.look(query, count, until, wait, limit)
        if wait > 0 and not found.is_complete:
            wanted = "no request was" if count == 1 else f"{found.matches} of {count} requests were"
            last = f" and until {until}" if until else ""
            raise HeraldTimeout(f"{wanted} caught within {wait:g} s for {query or 'any query'}{last}{_listed(found.items)}")
        return found.items

    def exactly(self, count: int, query: str, wait: float, quiet: float) -> list[Caught]:
        """`count` requests, and no further one for a while."""
        if not 0 <= count < KEPT:
            raise ValueError(f"the service keeps the newest {KEPT} requests: the count is 0 to {KEPT - 1}")
        if count > 0:
            self.read(query, count, None, wait, KEPT)
        found = self.look(query, count + 1, None, quiet, count + 1)
        if found.matches != count:
            raise HeraldUnexpected(
                f"{found.matches} requests were caught for {query or 'any query'}, and {count} are right{_listed(found.items)}"
            )
        return found.items

    def look(self, query: str, count: int, until: str | None, wait: float, limit: int) -> Found:
        """What matches now, or as soon as it is complete."""
        end = time.monotonic() + wait
        parameters: dict[str, str | float] = {"q": query, "count": count, "limit": limit}
        if until is not None:
            parameters["until"] = until
        while True:
            left = max(0.0, end - time.monotonic())
            answer = self._ask("GET", left, **parameters, wait=min(left, _LONGEST_WAIT))
            if answer["complete"] or left <= _LONGEST_WAIT:
                return Found([_caught(item) for item in answer["items"]], answer["matches"], answer["complete"])

    def clear(self, query: str) -> int:
        deleted: int = self._ask("DELETE", 0, q=query)["deleted"]
        return deleted

    def _ask(self, method: str, patience: float, /, **parameters: str | float) -> dict[str, Any]:
        request = urllib.request.Request(
            self._url + urllib.parse.urlencode(parameters), method=method, headers={"authorization": f"Bearer {self._token}"}
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=patience + 60) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            raise HeraldError(json.load(error)["error"]) from None


@dataclass(frozen=True)
class Found:
    """What a query has found: the newest first, the number of all, and whether they are what was waited for."""

    items: list[Caught]
    matches: int
    is_complete: bool


def _listed(items: list[Caught]) -> str:
    return "".join(f"\n  {item}" for item in items[:10])


def _moment(text: str | None) -> datetime.datetime | None:
    # Python 3.9 does not read the Z.
    return None if text is None else datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _caught(item: dict[str, Any]) -> Caught:
    came = _moment(item["time"])
    assert came is not None
    return Caught(
        item.get("status"), item.get("reason"), item.get("explanation"), item.get("id"), item["topic"], item["device"],
        item["headers"], item["payload"], item.get("tag"), came, _moment(item.get("answered")), item.get("retry_after"),
    )
