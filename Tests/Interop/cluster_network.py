"""A cluster in which each node and each NATS server has a network of its own, and faults between them.

    with network_cluster(folder) as cluster:    what this thread starts inside of `with` is in a network of its own
        fault = Cut([node], cluster.servers)    silently, also one way; `unplug` is noticed
        fault.heal()

The network of the test is the router between the machines. Providers and devices are there, and reach all machines. Addresses
can be the same in each run, since nobody else is in that network. It is gone with the processes in it, however the test ends.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess

import pytest

from agent_network import run
from nats_servers import NATSTrio, pause
from service import PATIENCE, Service, eventually

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


class PrivateNetwork:
    """A network of its own for the thread that enters it, and for all threads and processes that this one starts inside."""

    def __enter__(self):
        if os.geteuid() != 0:
            pytest.fail("networks with cables between them take the superuser: run the tests as root")
        self._own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        _check(_libc.unshare(CLONE_NEWNET), "unshare")
        run("ip", "link", "set", "lo", "up")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        return self

    def __exit__(self, *_):
        _check(_libc.setns(self._own, CLONE_NEWNET), "setns")
        os.close(self._own)


class Machine:
    """A machine with one cable to the router. A process runs on it with `inside` before its command line."""

    def __init__(self, number):
        self.cable, self.address, self.router = f"cable{number}", f"10.77.{number}.2", f"10.77.{number}.1"
        # It keeps the network until it is killed, with the test if need be.
        self._keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/thread-self/ns/net")
        eventually(lambda: os.readlink(f"/proc/{self._keeper.pid}/ns/net") != own, what="a network of its own")
        self.inside = ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net"]
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "wire", "netns", self._keeper.pid)
        run("ip", "addr", "add", f"{self.router}/24", "dev", self.cable)
        run("ip", "link", "set", self.cable, "up")
        run(*self.inside, "ip", "link", "set", "lo", "up")
        run(*self.inside, "ip", "addr", "add", f"{self.address}/24", "dev", "wire")
        self.plug()

    def plug(self):
        run(*self.inside, "ip", "link", "set", "wire", "up")
        run(*self.inside, "ip", "route", "add", "default", "via", self.router)

    def unplug(self):
        """Pulls the cable: the machine notices, and all others get errors."""
        run(*self.inside, "ip", "link", "set", "wire", "down")

    def close(self):
        self._keeper.kill()
        self._keeper.wait(timeout=PATIENCE)


class NetworkNode(Service):
    """A Herald node on a machine. Its ports are the same after each start."""

    def __init__(self, machine, data, *options):
        super().__init__(
            data, "--host", machine.address, "--hostname", machine.address, "--node", data.name,
            # Operators are elsewhere, too, and nobody else is in this network.
            "--console-host", machine.address, "--console-tls", "off", *options,
            prefix=["setpriv", "--pdeathsig", "KILL", *machine.inside],
        )
        self.machine, self.host, self.address = machine, machine.address, machine.address

    def __repr__(self):
        return self.data.name

    def start(self, *more):
        ports = {"api": 2197, "binary": 2195, "feedback": 2196, "device": 5223, "activation": 2191}
        return super().start(*more, *(part for name, port in ports.items() for part in (f"--{name}-port", str(port))))

    def pause(self):
        pause(self.pid)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)


class Cut:
    """Packets from some machines to others vanish, and nobody gets an error."""

    def __init__(self, sources, targets):
        pairs = [(source.address, target.address) for source in sources for target in targets]
        self._rules = [["from", source, "to", target, "blackhole"] for source, target in pairs]
        for rule in self._rules:
            run("ip", "rule", "add", *rule)

    def heal(self):
        for rule in self._rules:
            run("ip", "rule", "del", *rule)


class NetworkCluster:
    """Three nodes on three servers; each of the six is on a machine of its own. `start` takes some ten seconds."""

    def __init__(self, folder):
        self.machines = [Machine(number) for number in range(1, 7)]
        below, above = self.machines[:3], self.machines[3:]
        self.trio = NATSTrio(folder, addresses=[machine.address for machine in below])
        self.servers = self.trio.servers
        for server, machine in zip(self.servers, below):
            server.machine, server.prefix = machine, machine.inside
        options = ["--cluster", ",".join(self.trio.urls), "--cluster-monitor", ",".join(server.monitor for server in self.servers)]
        self.nodes = [NetworkNode(machine, folder / f"node{number}", *options) for number, machine in enumerate(above, 1)]

    def start(self):
        self.trio.start()
        first, *others = self.nodes
        first.start()
        for node in others:
            node.start("--cluster-key", str(first.data / "trust" / "cluster.key"))
        return self

    def others(self, *members):
        """All nodes and servers but these."""
        return [each for each in (*self.servers, *self.nodes) if each not in members]

    def close(self):
        for node in self.nodes:
            node.close()
            node.data.with_suffix(".log").write_text("\n".join(node.lines))
        self.trio.close()
        for machine in self.machines:
            machine.close()


@contextlib.contextmanager
def network_cluster(folder):
    """Runs a cluster inside of `with`. Until its end, this thread is in the network of the test."""
    with PrivateNetwork():
        cluster = NetworkCluster(folder)
        try:
            yield cluster.start()
        finally:
            cluster.close()
