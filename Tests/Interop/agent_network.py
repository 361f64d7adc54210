"""An agent in a network of its own, with one cable to the rest of the world that a test can pull."""

import json
import os
import subprocess
import threading

import pytest

from service import HERALD, PATIENCE, eventually

#: The name under which the agent finds its service.
NAME = "push.test"


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


class Network:
    """A pair of virtual Ethernet devices: `ours` here, `theirs` where the process of the network is."""

    def __init__(self):
        if os.geteuid() != 0:
            pytest.fail("a network of its own with a cable to this one takes the superuser: run the tests as root")
        number = os.getpid()
        self.ours, self.theirs = f"hv{number}a", f"hv{number}b"
        net = f"10.{200 + number // 250 % 50}.{number % 250}"
        self.address, self.other = f"{net}.1", f"{net}.2"
        self.inside = None
        # The process that keeps the network: it waits for the end of its input.
        self.keeper = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        eventually(lambda: os.readlink(f"/proc/{self.keeper.pid}/ns/net") != own, what="a network of its own")
        self.inside = ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net"]
        run("ip", "link", "add", self.ours, "type", "veth", "peer", "name", self.theirs, "netns", self.keeper.pid)
        run("ip", "addr", "add", f"{self.address}/30", "dev", self.ours)
        run("ip", "link", "set", self.ours, "up")
        run(*self.inside, "ip", "link", "set", "lo", "up")
        run(*self.inside, "ip", "addr", "add", f"{self.other}/30", "dev", self.theirs)
        run(*self.inside, "ip", "link", "set", self.theirs, "up")

    def pull(self):
        """Pulls the cable: the agent's machine notices."""
        run(*self.inside, "ip", "link", "set", self.theirs, "down")

    def plug(self):
        run(*self.inside, "ip", "link", "set", self.theirs, "up")

    def drop_packets(self):
        """Drops every packet in both directions silently."""
        run(*self.inside, "ip", "route", "add", "blackhole", f"{self.address}/32")
        run("ip", "route", "add", "blackhole", f"{self.other}/32")

    def deliver(self):
        run(*self.inside, "ip", "route", "del", "blackhole", f"{self.address}/32")
        run("ip", "route", "del", "blackhole", f"{self.other}/32")

    def close(self):
        subprocess.run(["ip", "route", "del", "blackhole", f"{self.other}/32"], capture_output=True, timeout=PATIENCE)
        subprocess.run(["ip", "link", "del", self.ours], capture_output=True, timeout=PATIENCE)
        self.keeper.stdin.close()
        self.keeper.wait(timeout=PATIENCE)


class NetworkedAgent:
    """`herald agent run --json` in a network; what it printed, line by line."""

    def __init__(self, network, service, port, apps, hosts, *options):
        path, _ = service.device("agent")
        hosts.write_text(f"127.0.0.1 localhost\n{network.address} {NAME}\n")
        inside = f'mount --bind {hosts} /etc/hosts && exec "$@"'
        command = [
            *network.inside, "unshare", "--mount", "sh", "-c", inside, "sh",
            HERALD, "agent", "run", "--identity", path, "--ca", service.ca, "--service", NAME, "--device-port", str(port), "--json",
            *options, *(part for app in apps for part in ("--app", app)),
        ]
        self.events = []
        self._changed = threading.Condition(threading.RLock())
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()

    def count(self, event):
        with self._changed:
            return sum(found["event"] == event for found in self.events)

    def shown(self):
        """The `apns-id` of every notification that was printed, in order."""
        with self._changed:
            return [found["apns_id"].lower() for found in self.events if found["event"] == "notification"]

    def tokens(self):
        with self._changed:
            return {found["topic"]: found["token"] for found in self.events if found["event"] == "token"}

    def wait(self, condition, what, timeout=2 * PATIENCE):
        """Waits until a condition holds for the printed lines."""
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise AssertionError(f"{what} did not come about within {timeout} s; the last: {self.events[-5:]}")

    def close(self):
        """Ends it in order: the folder that it made for itself goes with it."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)
