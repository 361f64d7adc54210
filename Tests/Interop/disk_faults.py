"""A disk that fails or is slow, as a running service sees it: strace changes its system calls."""

import signal
import subprocess

from service import PATIENCE


class DiskFault:
    """Lets system calls of a running service fail or take long until it is closed; `fault` is in strace's words."""

    def __init__(self, service, calls, fault):
        self._strace = subprocess.Popen(
            ["strace", "-f", "-p", str(service.pid), "-e", f"trace={calls}", "-o", "/dev/null", "-e", f"inject={calls}:{fault}"],
            stderr=subprocess.PIPE, text=True,
        )
        # strace says so once it holds every thread.
        first = self._strace.stderr.readline()
        if "attached" not in first:
            self.close()
            raise AssertionError(f"strace does not hold the service: {first}")

    def close(self):
        # Its traps go with it; the service, if it still runs, runs on.
        self._strace.send_signal(signal.SIGINT)
        self._strace.wait(timeout=PATIENCE)
        self._strace.stderr.close()


def full_disk(service):
    return DiskFault(service, "pwrite64", "error=ENOSPC")


def slow_disk(service, seconds):
    """A disk whose every sync takes so long, at least."""
    return DiskFault(service, "fsync,fdatasync", f"delay_enter={int(seconds * 1_000_000)}")
