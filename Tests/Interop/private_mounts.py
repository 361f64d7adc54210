"""Private mounts, which end with the test."""

import ctypes
import functools
import os
import subprocess
import sys
import threading

import pytest

from service import HERALD

CLONE_NEWNS = 0x00020000
# In the environment of a pytest that runs one test in a namespace of its own.
INSIDE = "HERALD_TEST_IN_NAMESPACE"
IS_INSIDE = os.environ.pop(INSIDE, "") == "1"


def mount(folder, what, size="64m"):
    """Mounts a file system in memory on a folder (`tmpfs`), or changes the one that is there (`remount,ro`)."""
    options = ["-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs"] if what == "tmpfs" else ["-o", what]
    subprocess.run(["mount", *options, folder], check=True, capture_output=True)


def _on_private_thread(body):
    """Runs something on a thread that has a mount namespace to itself, as all processes have that it starts."""
    failures = []

    def run():
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
            body()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _in_user_namespace(test):
    """Runs the test once more, in a process that is the superuser of a user namespace of its own.

    A process with more than one thread cannot enter one, so it is another pytest.
    """
    if IS_INSIDE:
        pytest.fail("a user namespace whose user is not its superuser")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
        pytest.fail(
            "mounting needs the superuser or user namespaces; allow them (sysctl kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0) or run the tests as root"
        )
    node = f"{sys.modules[test.__module__].__file__}::{test.__name__}"
    result = subprocess.run(
        ["unshare", "-rm", sys.executable, "-m", "pytest", node, "-q", "-p", "no:cacheprovider", "--timeout", "300"],
        env={**os.environ, INSIDE: "1", "HERALD_BINARY": str(HERALD)}, cwd=os.path.dirname(__file__), capture_output=True, text=True,
    )
    if result.returncode != 0:
        pytest.fail(f"in a user namespace:\n{result.stdout}\n{result.stderr}")


def in_private_mounts(test):
    """Runs a test with a mount namespace to itself; without root, as the superuser of a user namespace.

    The mounts end with the last of its processes, whatever happens to the test.
    """

    @functools.wraps(test)
    def run(*arguments, **named):
        if os.geteuid() == 0:
            _on_private_thread(lambda: test(*arguments, **named))
        else:
            _in_user_namespace(test)

    return run
