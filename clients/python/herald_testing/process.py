"""Processes that end with this one, however this one ends."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence

#: The standard input of this shell script ends with the process that started it. Then it stops what it guards, by force if that
#: takes too long.
_GUARDIAN = """
patience=$1
shift
"$@" &
child=$!
exec >&-
read -r line
kill "$child" 2>/dev/null
(
    trap 'kill "$sleep"; exit' TERM
    sleep "$patience" &
    sleep=$!
    wait "$sleep" && kill -KILL "$child"
) 2>/dev/null &
force=$!
wait "$child"
kill "$force" 2>/dev/null
"""


def environment() -> dict[str, str]:
    """The environment for `herald`: without settings of Herald that somebody has in theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HERALD_")}


class Guarded:
    """A running command, whose output is read line by line on a thread."""

    def __init__(self, command: Sequence[str], log: str, take: Callable[[str | None], None], patience: float = 60) -> None:
        """`take` gets each line of the output, and None at its end. `log` is the file for standard error.

        `patience` is how long its end may take before it is forced, in seconds.
        """
        with open(log, "a") as errors:
            self._shell = subprocess.Popen(
                ["sh", "-c", _GUARDIAN, "herald-guardian", str(patience), *command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(), start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, args=(take,), daemon=True)
        self._reader.start()

    def _read(self, take: Callable[[str | None], None]) -> None:
        assert self._shell.stdout is not None
        with self._shell.stdout as output:
            for line in output:
                take(line.rstrip("\n"))
        take(None)

    def stop(self) -> None:
        """Stops the command, and waits for its end."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()
        self._reader.join()
