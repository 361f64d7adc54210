"""Mounts that nobody else sees and that leave nothing behind."""

import ctypes
import functools
import os
import subprocess
import threading

import pytest

CLONE_NEWNS = 0x00020000


def mount(folder, what, size="64m"):
    """Mounts a file system in memory on a folder (`tmpfs`), or changes the one that is there (`remount,ro`)."""
    options = ["-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs"] if what == "tmpfs" else ["-o", what]
    subprocess.run(["mount", *options, folder], check=True, capture_output=True)


def in_private_mounts(test):
    """Runs a test on a thread that has a mount namespace to itself, as all processes have that it starts.

    The mounts end with the last of them, whatever happens to the test.
    """

    @functools.wraps(test)
    def run(*arguments, **named):
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        failures = []

        def body():
            try:
                if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
                    raise OSError(ctypes.get_errno(), "unshare")
                subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
                test(*arguments, **named)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]

    return run
