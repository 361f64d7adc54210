"""Apple's names in this process, for clients that know no other address."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def names(authority: str | os.PathLike[str], *, api: int, gateway: int, feedback: int) -> Iterator[None]:
    """Resolves Apple's names to ports of the loopback, and trusts an authority instead of the system's."""
    ports = {"api": api, "gateway": gateway, "feedback": feedback}
    resolve, former = socket.getaddrinfo, os.environ.get("SSL_CERT_FILE")

    def resolve_here(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if isinstance(name, str) and name.endswith(".push.apple.com"):
            service = name.split(".")[0].split("-")[0]
            if service in ports:
                return resolve("127.0.0.1", ports[service], *arguments, **options)
        return resolve(host, port, *arguments, **options)

    socket.getaddrinfo = resolve_here
    os.environ["SSL_CERT_FILE"] = os.fspath(authority)
    try:
        yield
    finally:
        socket.getaddrinfo = resolve
        if former is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = former
