"""The `herald` binary of the machine."""

from __future__ import annotations

import os
import re
import shutil

from .errors import HeraldError

#: The oldest version that this package can start.
OLDEST = (0, 9, 0)


class HeraldMissing(HeraldError):
    """There is no `herald` binary."""


class HeraldTooOld(HeraldError):
    """The `herald` binary is older than this package needs."""


def find(given: str | os.PathLike[str] | None = None) -> str:
    """The path of the binary: the given one, the one that HERALD_BINARY names, or the one in PATH."""
    name = os.fspath(given) if given is not None else os.environ.get("HERALD_BINARY") or None
    if name is None:
        found = shutil.which("herald")
        if found is None:
            raise HeraldMissing("there is no `herald` in PATH: install Herald's package, or name the binary with HERALD_BINARY")
        return found
    if not os.path.isfile(name) or not os.access(name, os.X_OK):
        raise HeraldMissing(f"{name} is not a program: give HERALD_BINARY the path of `herald`")
    return os.path.abspath(name)


def check_version(path: str, text: str) -> None:
    """Refuses the output of `herald --version` of another program, or of an old Herald."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        raise HeraldMissing(f"{path} does not tell its version, so it is not Herald: it says {text.strip()!r}")
    if tuple(map(int, found.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise HeraldTooOld(
            f"{path} is Herald {found[0]}, and herald-testing needs {oldest} or newer: install a newer one, or name it with "
            "HERALD_BINARY"
        )
