"""A cluster as its users see it: Herald nodes on three NATS servers, behind one TCP load balancer.

A `Cluster` is a service for the tests of services: they reach the load balancer (`listeners`), and commands work on the folder
of the first node. So a file of tests can run the functions of another one against it:

    from test_device_clients import *

    @pytest.fixture(scope="module")
    def shared(cluster): return cluster
"""

import os
import pathlib
import socket
import subprocess
import sys
import textwrap

from nats_servers import NATSTrio
from service import PATIENCE, Service, eventually, herald, open_connections

#: The listeners that the load balancer has, too.
BALANCED = ("api", "binary", "feedback", "device", "activation")

BALANCER = """\
defaults
    mode tcp
    retries 3
    option redispatch
    timeout connect 10s
    timeout client 1h
    timeout server 1h
"""


class Balancer:
    """HAProxy. It hands each connection to the next node as it is: TLS is between the client and the node."""

    def __init__(self, folder, nodes, sockets):
        """`sockets` are bound ones of `BALANCED`, by name."""
        sections = [BALANCER]
        for name, listener in sockets.items():
            servers = [f"    server {node.data.name} 127.0.0.1:{node.listeners[name]}" for node in nodes]
            sections.append("\n".join([f"listen {name}", f"    bind fd@{listener.fileno()}", "    balance roundrobin", *servers, ""]))
        configuration = folder / "haproxy.cfg"
        configuration.write_text("\n".join(sections))
        self.listeners = {name: listener.getsockname()[1] for name, listener in sockets.items()}
        for listener in sockets.values():
            listener.listen(1024)
        with (folder / "haproxy.log").open("w") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "haproxy", "-db", "-f", configuration], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, pass_fds=[listener.fileno() for listener in sockets.values()],
            )
        for listener in sockets.values():
            listener.close()

    def close(self):
        self._process.kill()
        self._process.wait(timeout=PATIENCE)


class Cluster(Service):
    """`count` nodes, which are `nodes`, on the servers of `trio`."""

    def __init__(self, folder, count=1, *options):
        super().__init__(folder / "node1")
        self.folder = folder
        self.trio = NATSTrio(folder)
        cluster = [
            "--cluster", ",".join(self.trio.urls), "--cluster-monitor", ",".join(server.monitor for server in self.trio.servers),
        ]
        self.nodes = [
            Service(folder / f"node{number}", *cluster, "--node", f"node{number}", *options) for number in range(1, count + 1)
        ]
        self._balancers, self._networks = [], []

    def start(self):
        self.trio.start()
        first, *others = self.nodes
        first.start()
        for node in others:
            node.start("--cluster-key", str(first.data / "trust" / "cluster.key"))
        self.listeners = self.balance({name: socket.create_server(("127.0.0.1", 0)) for name in BALANCED})
        return self

    def balance(self, sockets, network=None):
        """The ports of a load balancer on bound sockets, which are of another network perhaps; it ends with the cluster."""
        folder = self.folder / f"balancer{len(self._balancers) + 1}"
        folder.mkdir()
        self._balancers.append(Balancer(folder, self.nodes, sockets))
        self._networks.append(network)
        return self._balancers[-1].listeners

    def has_device_at(self, port):
        """Whether a node still holds a connection of which the load balancers have no more the device's part."""
        parts = [
            open_connections(network.pid if network else "self", balancer.listeners["device"])
            for network, balancer in zip(self._networks, self._balancers)
        ]
        held = sum(len(open_connections(node.pid, node.listeners["device"])) for node in self.nodes)
        return any(port in part for part in parts) or held > sum(map(len, parts))

    def provider_key(self, *topics, **options):
        """A provider token key that all nodes know."""
        made = super().provider_key(*topics, **options)
        for node in self.nodes:
            listed = lambda: herald("provider", "list", "--data", node.data, "--json").stdout
            eventually(lambda: made[1] in listed(), what=f"the key at {node.data.name}")
        return made

    def close(self):
        for end in (*self._balancers, *filter(None, self._networks)):
            end.close()
        for node in self.nodes:
            node.close()
        self.trio.close()


#: Binds ports of the loopback where it runs, hands them over, and keeps its namespaces until its input ends.
HAND_OVER = textwrap.dedent(
    """
    import socket, sys
    sockets = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[2:]]
    with socket.socket(fileno=int(sys.argv[1])) as pipe:
        socket.send_fds(pipe, [b"sockets"], [each.fileno() for each in sockets])
    sys.stdin.read()
    """
)


class NamedNetwork:
    """A network in which host names lead to the loopback, and that has sockets of processes outside.

    Processes enter it with `inside`; `sockets` has a bound one for each of `ports`.
    """

    def __init__(self, folder: pathlib.Path, names, ports):
        hosts = folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {name}\n" for name in names))
        user = ["--map-root-user"] if os.geteuid() else []
        enter = f'ip link set lo up && mount --bind {hosts} /etc/hosts && exec "$@"'
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._keeper = subprocess.Popen(
                [
                    "unshare", "--mount", "--net", *user, "sh", "-c", enter, "sh", sys.executable, "-c", HAND_OVER,
                    str(theirs.fileno()), *map(str, ports.values()),
                ],
                stdin=subprocess.PIPE, pass_fds=[theirs.fileno()],
            )
            ours.settimeout(PATIENCE)
            _, descriptors, _, _ = socket.recv_fds(ours, 16, len(ports))
        self.sockets = {name: socket.socket(fileno=descriptor) for name, descriptor in zip(ports, descriptors, strict=True)}
        more = ["--user", "--preserve-credentials"] if user else []
        self.pid = self._keeper.pid
        self.inside = ["nsenter", "--target", str(self.pid), "--mount", "--net", *more]

    def close(self):
        self._keeper.kill()
        self._keeper.wait(timeout=PATIENCE)
        self._keeper.stdin.close()
