"""Apple's names in a Python process: of a test, and of each one that a test starts.

Python imports this module at its start where its folder is in PYTHONPATH. So it needs no other module of the package: a process may
have another environment.
"""

from __future__ import annotations

import importlib
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from typing import Any

#: The ports of the loopback behind Apple's names, like `api:4711,gateway:4712,feedback:4713`; empty refuses the names.
VARIABLE = "AS_APPLE_PORTS"


class AppleRefused(socket.gaierror):
    """A test tried to reach Apple."""


def is_apples(host: object) -> bool:
    """Whether a host is one of Apple's push services."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    return isinstance(name, str) and f".{name}".lower().rstrip(".").endswith(".push.apple.com")


class Names:
    """Leads Apple's names to ports of the loopback in this process; without ports it refuses them."""

    def __init__(self, ports: Mapping[str, int], authority: str | None) -> None:
        self._ports = ports
        self._authority = authority
        self._kept: list[tuple[Any, str, Any]] = []

    def _port(self, host: Any) -> int:
        name: str = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        found = self._ports.get(name.lower().split(".")[0].split("-")[0])
        if found is None:
            raise AppleRefused(
                socket.EAI_NONAME,
                f"a test must not reach Apple, so herald-testing does not resolve {name}: use the fixture as_apple, or give your "
                "client the address of the fixture herald",
            )
        return found

    def install(self) -> None:
        """Replaces what resolves names and trusts certificates, until `remove`."""
        resolve = socket.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
            if is_apples(host):
                host, port = "127.0.0.1", self._port(host)
            return resolve(host, port, *arguments, **options)

        self._put(socket, "getaddrinfo", getaddrinfo)
        for name in ("gethostbyname", "gethostbyname_ex"):
            self._put(socket, name, self._refusing(getattr(socket, name)))
        for name in ("wrap_socket", "wrap_bio"):
            self._put(ssl.SSLContext, name, self._trusting(getattr(ssl.SSLContext, name)))
        self._install_in_uvloop()

    def remove(self) -> None:
        """Puts back what was replaced."""
        while self._kept:
            owner, name, former = self._kept.pop()
            setattr(owner, name, former)

    def _put(self, owner: Any, name: str, new: Any) -> None:
        self._kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    def _refusing(self, former: Any) -> Any:
        """These functions know no port, so they cannot lead a name to one."""

        def resolve(host: Any) -> Any:
            if is_apples(host):
                Names({}, None)._port(host)
            return former(host)

        return resolve

    def _trusting(self, former: Any) -> Any:
        """A context that was made before, like one at import, trusts the authority for Apple's names, too."""

        def wrap(context: ssl.SSLContext, *arguments: Any, **options: Any) -> Any:
            if self._authority is not None and is_apples(options.get("server_hostname")):
                context.load_verify_locations(self._authority)
            return former(context, *arguments, **options)

        return wrap

    def _install_in_uvloop(self) -> None:
        """Its loops resolve names without Python's functions."""
        try:
            uvloop = importlib.import_module("uvloop")
        except ImportError:
            return
        connect = uvloop.Loop.create_connection

        async def create_connection(
            loop: Any, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
        ) -> Any:
            if is_apples(host):
                place = self._port(host)
                if options.get("ssl") and options.get("server_hostname") is None:
                    options["server_hostname"] = host
                host, port = "127.0.0.1", place
            return await connect(loop, protocol_factory, host, port, **options)

        self._put(uvloop.Loop, "create_connection", create_connection)


def of_environment() -> Names | None:
    """The names that the process which started this one has; None if it says nothing of them."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    places = [part.partition(":") for part in text.split(",") if part]
    return Names({name: int(port) for name, _, port in places}, os.environ.get("SSL_CERT_FILE") if places else None)


if __name__ == "sitecustomize":
    found = of_environment()
    if found is not None:
        found.install()
    # The machine may have a module of this name, too.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    this = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = this
