"""Apple's names in this process and in those that it starts, for clients that know no other address."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator, Mapping

from .child.sitecustomize import VARIABLE, Names

#: The folder whose module Python imports at the start of a process.
_CHILD = pathlib.Path(__file__).parent / "child"


@contextlib.contextmanager
def names(ports: Mapping[str, int], authority: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Resolves Apple's names to ports of the loopback, and trusts an authority instead of the system's; refuses them without ports."""
    trusted = None if authority is None else os.fspath(authority)
    path = os.pathsep.join([str(_CHILD), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {VARIABLE: ",".join(f"{name}:{port}" for name, port in ports.items()), "PYTHONPATH": path}
    if trusted is not None:
        variables["SSL_CERT_FILE"] = trusted
    former = {name: os.environ.get(name) for name in variables}
    here = Names(ports, trusted)
    here.install()
    os.environ.update(variables)
    try:
        yield
    finally:
        here.remove()
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
