"""Requests of providers that the service has caught, with their payloads and answers."""

from __future__ import annotations

import json
import pathlib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import HeraldError, HeraldTimeout

#: The longest wait in one request, in seconds.
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Caught:
    """A request of a provider, whether the service has accepted it or not."""

    #: The status of the answer; at the binary interface that of the error response, 0 for none; None without an answer.
    status: int | None
    #: The reason of a refusal, and its explanation.
    reason: str | None
    explanation: str | None
    apns_id: str | None
    topic: str
    #: The identifier of the device; empty if the token is of none, and for a broadcast.
    device: str
    #: The fields of the header, without `authorization`.
    headers: Mapping[str, str]
    #: The payload as it was sent.
    text: str
    tag: str | None

    @property
    def payload(self) -> Any:
        """The payload, read as JSON."""
        return json.loads(self.text)


class Inbox:
    """The console's routes `/v1/caught`."""

    def __init__(self, port: int, data: pathlib.Path) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/caught?"
        self._token = (data / "run" / "admin.token").read_text().strip()

    def read(self, query: str, wait: float, limit: int) -> list[Caught]:
        answer = self._ask("GET", wait, q=query, wait=min(wait, _LONGEST_WAIT), limit=limit)
        if wait > 0 and not answer["items"]:
            raise HeraldTimeout(f"no request was caught within {wait:g} s for {query or 'any query'}")
        return [_caught(item) for item in answer["items"]]

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


def _caught(item: dict[str, Any]) -> Caught:
    return Caught(
        item.get("status"), item.get("reason"), item.get("explanation"), item.get("id"), item["topic"], item["device"],
        item["headers"], item["payload"], item.get("tag"),
    )
