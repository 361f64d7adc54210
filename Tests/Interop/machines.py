"""Two machines on one network: each has a network namespace, a name and a folder of its own.

They are made of namespaces that end with their processes; without root they are in a user namespace.
"""

import os
import signal
import subprocess
import threading

import pytest

from service import HERALD, PATIENCE

NETWORK = """
set -e
ip link set lo up
mount --bind "$1" /etc/hosts
unshare --net sleep infinity &
other=$!
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do kill -0 $other; done
ip link add wire0 type veth peer name wire1 netns $other
ip addr add 10.99.0.1/24 dev wire0
ip link set wire0 up
nsenter --target $other --net sh -e -c \\
    'ip link set lo up; ip addr add 10.99.0.2/24 dev wire1; ip link set wire1 up'
echo $$ $other
exec sleep infinity
"""


class Machine:
    """A machine, on which commands run in its folder."""

    def __init__(self, pid, name, folder, namespaces):
        self.name = name
        self.folder = folder
        self._enter = ["nsenter", "--target", pid, *namespaces]
        self._running = []

    def start(self, command):
        """Starts a command line, as a shell reads it, with `herald` in the path."""
        self._running.append(Running(self, command))
        return self._running[-1]

    def spawn(self, command):
        environment = {**os.environ, "PATH": f"{HERALD.parent}:{os.environ['PATH']}"}
        return subprocess.Popen(
            # A mount namespace is entered at its root.
            [*self._enter, "sh", "-c", 'cd "$0" && eval "exec env $1"', self.folder, command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )

    def close(self):
        for running in self._running:
            running.kill()


class Running:
    """A command on a machine, and what it prints."""

    def __init__(self, machine, command):
        self.command = command
        self.lines = []
        self._changed = threading.Condition()
        self._ended = False
        self._process = machine.spawn(command)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def line(self, number, timeout=PATIENCE):
        """One line of what it prints, counted from 0, once it is there; None if it ends before."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended or len(self.lines) > number, timeout), (
                f"{self.command}: printed no more than {self.lines}"
            )
            return self.lines[number] if len(self.lines) > number else None

    def wait(self, timeout=PATIENCE):
        """Its exit code."""
        code = self._process.wait(timeout=timeout)
        self._reader.join(timeout=PATIENCE)
        return code

    def stop(self):
        """Asks it to stop; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=PATIENCE)


class Machines:
    """Two machines and the wire between them."""

    def __init__(self, folder, first, second):
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n10.99.0.1 {first}.example\n10.99.0.2 {second}.example\n")
        user = ["--map-root-user"] if os.geteuid() else []
        self._process = subprocess.Popen(
            ["unshare", *user, "--mount", "--net", "sh", "-c", NETWORK, "sh", hosts],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        pids = self._process.stdout.readline().split()
        if len(pids) != 2:
            pytest.fail(
                f"no network namespaces: {self._process.stderr.read()}; they need iproute2 (make peers), and root or user "
                "namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
            )
        namespaces = ["--mount", "--net", *(["--user", "--preserve-credentials"] if user else [])]
        self.by_name = {}
        for name, pid in zip((first, second), pids):
            (folder / name).mkdir()
            self.by_name[name] = Machine(pid, name, folder / name, namespaces)

    def close(self):
        for machine in self.by_name.values():
            machine.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=PATIENCE)
