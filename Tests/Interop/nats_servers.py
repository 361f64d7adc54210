"""Real NATS servers on this machine, one or three: the replicated log of a cluster, and the faults that a test does to it.

    trio = NATSTrio(tmp_path).start()      three servers of one cluster, every write synced; none of them is behind
    trio.servers[0].kill()                 kill -9; `pause` and `resume` stop it and let it go on
    trio.servers[0].lame_duck()            its clients and leaders move to the others; then it ends
    trio.start()                           starts those that do not run, and waits until none is behind
    trio.close()                           ends all; the folders stay

A cluster has a loopback address of its own for each server. So no other process takes the port of a server that is down.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import urllib.request

from service import PATIENCE, eventually

#: Where pip puts the server: beside the Python that runs the tests.
NATS_SERVER = pathlib.Path(sys.executable).parent / "nats-server"

#: The ports of a server: for clients, for the other servers, for monitoring.
CLIENT, ROUTE, MONITOR = 4222, 6222, 8222

CONFIGURATION = """\
server_name: {name}
listen: "{address}:{client}"
http: "{address}:{monitor}"
jetstream {{
  store_dir: "{folder}"
  max_memory_store: 64MiB
  max_file_store: 1GiB
  sync_interval: {sync}
}}
ping_interval: "10s"
ping_max: 2
lame_duck_duration: "30s"
lame_duck_grace_period: "1s"
{cluster}
"""

#: Clients are not told of the other servers: a test decides to which of them a client speaks.
CLUSTER = """\
cluster {{
  name: herald
  listen: "{address}:{route}"
  routes: [{routes}]
  no_advertise: true
}}"""


def free_addresses(count):
    """Loopback addresses, next to each other, of which nobody uses the ports of a server."""
    while True:
        network = f"127.{random.randint(1, 250)}.{random.randint(0, 250)}"
        addresses = [f"{network}.{number}" for number in range(1, count + 1)]
        if all(map(_is_free, addresses)):
            return addresses


def _is_free(address):
    try:
        for port in (CLIENT, ROUTE, MONITOR):
            socket.create_server((address, port)).close()
    except OSError:
        return False
    return True


def pause(pid):
    """Stops a process, until it gets SIGCONT."""
    os.kill(pid, signal.SIGSTOP)
    # The threads stop one after the other.
    threads = pathlib.Path(f"/proc/{pid}/task")
    eventually(lambda: all((each / "stat").read_text().rpartition(") ")[2][0] in "TZ" for each in threads.iterdir()))


class NATSServer:
    """One server: `start`, `kill`, `pause` and `resume` as often as a test likes. Its folder survives.

    `sync` is its `sync_interval`. `extra` is added to its configuration, as it stands.
    """

    def __init__(self, name, folder, address=None, sync="always", extra=""):
        self.name, self.folder = name, folder
        self.address = address or free_addresses(1)[0]
        self.sync, self.extra = sync, extra
        self.configuration = folder.with_suffix(".conf")
        self.log = folder.with_suffix(".log")
        self.process = None
        #: Words before its command line, such as `["faketime", "+90s"]`.
        self.prefix = ()
        #: The other servers of its cluster.
        self.others = ()

    def __repr__(self):
        return self.name

    @property
    def url(self):
        return f"nats://{self.address}:{CLIENT}"

    @property
    def monitor(self):
        """The URL of its monitoring port."""
        return f"http://{self.address}:{MONITOR}"

    @property
    def pid(self):
        return self.process.pid

    @property
    def route(self):
        return f"nats://{self.address}:{ROUTE}"

    def start(self):
        """Starts it, and waits for nothing; see `wait`. It ends with the thread that starts it."""
        assert not self.process, f"{self.name} runs"
        routes = ", ".join(f'"{other.route}"' for other in self.others)
        cluster = CLUSTER.format(address=self.address, route=ROUTE, routes=routes) if self.others else ""
        self.configuration.write_text(CONFIGURATION.format(
            name=self.name, address=self.address, client=CLIENT, monitor=MONITOR, folder=self.folder, sync=self.sync,
            cluster=f"{cluster}\n{self.extra}",
        ))
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                # It ends with the test, however that ends. Linux counts the thread that starts it as its parent.
                ["setpriv", "--pdeathsig", "KILL", *self.prefix, str(NATS_SERVER), "--config", str(self.configuration)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )
        return self

    def wait(self):
        """Waits until it is healthy: in a cluster that needs a second one."""
        eventually(self.is_healthy, 2 * PATIENCE, f"a healthy {self.name}")
        return self

    def kill(self):
        """Kills it, if it runs: kill -9."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self):
        """Asks it to stop, as a service manager does, and waits for its end."""
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.process = None

    def lame_duck(self):
        """Ends it as an upgrade does: it asks its clients to leave, hands over what it leads, and ends by itself.

        That takes a second or two (the grace period), and longer if clients stay.
        """
        os.kill(self.pid, signal.SIGUSR2)
        self.process.wait(timeout=2 * PATIENCE)
        self.process = None

    def pause(self):
        pause(self.pid)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def ask(self, path, timeout=PATIENCE):
        """The answer of its monitoring port: `varz`, `jsz?streams=true`, `healthz`."""
        with urllib.request.urlopen(f"{self.monitor}/{path}", timeout=timeout) as answer:
            return json.load(answer)

    def is_healthy(self):
        """Whether it runs, knows a leader of the cluster, and has caught up with what it keeps."""
        try:
            return self.ask("healthz", timeout=5)["status"] == "ok"
        except (OSError, ValueError):
            return False

    def jetstream(self):
        """JetStream's state, as the monitoring port shows it; empty if it does not answer."""
        try:
            return self.ask("jsz?streams=true", timeout=5)
        except (OSError, ValueError):
            return {}

    @staticmethod
    def streams(state):
        """The streams in JetStream's state."""
        return [stream for account in state.get("account_details", []) for stream in account.get("stream_detail", [])]

    def groups(self):
        """The Raft groups that this server leads: only a leader knows which of the others are behind."""
        state = self.jetstream()
        groups = [state.get("meta_cluster"), *(stream.get("cluster") for stream in self.streams(state))]
        return [group for group in groups if group and group.get("leader") == self.name]


class NATSTrio:
    """Three servers that know each other. Each has its folder below `folder`.

    `addresses` are those of the loopback that nobody uses, unless told otherwise.
    """

    def __init__(self, folder, sync="always", extra="", addresses=None):
        names = ("n1", "n2", "n3")
        self.servers = [
            NATSServer(name, folder / name, address, sync, extra) for name, address in zip(names, addresses or free_addresses(3))
        ]
        for server in self.servers:
            server.others = [other for other in self.servers if other is not server]
        #: A file with the cluster key of the nodes on them, for commands beside the nodes.
        self.key = None

    def start(self):
        """Starts those that do not run, and waits until none is behind.

        Right after the very first start, JetStream may refuse to make a stream of three replicas (10005): try again.
        """
        return self.launch().wait()

    def launch(self):
        """Starts those that do not run."""
        for server in self.servers:
            if not server.process:
                server.start()
        return self

    def wait(self):
        """Waits until all three run and none is behind; after a kill of all that takes 5 to 10 s."""
        eventually(self.is_whole, 2 * PATIENCE, "three servers of which none is behind")
        return self

    def is_whole(self):
        """Whether all three run, and the leader of each Raft group says that both others are up to date."""
        if not all(server.is_healthy() for server in self.servers):
            return False
        groups = [group for server in self.servers for group in server.groups()]
        replicas = [group.get("replicas", []) for group in groups]
        # One group is that of the cluster itself.
        return bool(groups) and all(len(each) == 2 and all(one["current"] for one in each) for each in replicas)

    @property
    def urls(self):
        return [server.url for server in self.servers]

    def leader(self, stream):
        """The server that leads a stream."""
        def names():
            streams = [each for server in self.servers for each in server.streams(server.jetstream()) if each["name"] == stream]
            return [each["cluster"]["leader"] for each in streams if each.get("cluster", {}).get("leader")]

        return self.named(eventually(names, 2 * PATIENCE, f"a leader of {stream}")[0])

    def named(self, name):
        """The server of a name, such as that of a leader."""
        return next(server for server in self.servers if server.name == name)

    def kill_all(self):
        """Kills all at once: none of them hears that another is gone."""
        for server in self.servers:
            server.pause()
        for server in self.servers:
            server.kill()

    def close(self):
        for server in self.servers:
            server.kill()
