"""Three real NATS servers on this machine: the replicated log of a cluster, and the faults that a test does to it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import urllib.request

from guest import free_ports
from service import PATIENCE, eventually

#: Where pip puts the server: beside the Python that runs the tests.
NATS_SERVER = pathlib.Path(sys.executable).parent / "nats-server"

CONFIGURATION = """\
server_name: {name}
listen: "127.0.0.1:{client}"
http: "127.0.0.1:{monitor}"
jetstream {{
  store_dir: "{folder}"
  max_memory_store: 64MiB
  max_file_store: 1GiB
  sync_interval: {sync}
}}
cluster {{
  name: herald
  listen: "127.0.0.1:{route}"
  routes: [{routes}]
}}
ping_interval: "10s"
ping_max: 2
"""


class NATSServer:
    """One server: `start`, `kill`, `pause` and `resume` as often as a test likes. Its folder survives."""

    def __init__(self, name, folder, ports):
        self.name, self.folder = name, folder
        self.client, self.monitor, self.route = ports
        self.configuration = folder.with_suffix(".conf")
        self.log = folder.with_suffix(".log")
        self.process = None
        self.prefix = ()

    def __repr__(self):
        return self.name

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.client}"

    @property
    def pid(self):
        return self.process.pid

    def write_configuration(self, others, sync):
        routes = ", ".join(f'"nats://127.0.0.1:{other.route}"' for other in others)
        self.configuration.write_text(CONFIGURATION.format(
            name=self.name, client=self.client, monitor=self.monitor, route=self.route, folder=self.folder, routes=routes, sync=sync,
        ))

    def start(self):
        assert not self.process, f"{self.name} runs"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                # It ends with the test, however that ends.
                ["setpriv", "--pdeathsig", "KILL", *self.prefix, str(NATS_SERVER), "--config", str(self.configuration)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def ask(self, path):
        """What its monitoring port says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{path}", timeout=5) as answer:
            return json.load(answer)

    def is_healthy(self):
        """Whether it runs, knows a leader of the cluster, and has caught up with what it keeps."""
        try:
            return self.ask("healthz")["status"] == "ok"
        except (OSError, ValueError):
            return False

    def groups(self):
        """The Raft groups that this server leads: only a leader knows which of the others are behind."""
        try:
            state = self.ask("jsz?streams=true")
        except (OSError, ValueError):
            return []
        streams = [stream for account in state.get("account_details", []) for stream in account.get("stream_detail", [])]
        groups = [state.get("meta_cluster"), *(stream.get("cluster") for stream in streams)]
        return [group for group in groups if group and group.get("leader") == self.name]


class NATSTrio:
    """Three servers that know each other. Each has its folder below `folder`."""

    def __init__(self, folder, sync="always"):
        self.sync = sync
        ports = iter(free_ports(9))
        self.servers = [NATSServer(name, folder / name, [next(ports) for _ in range(3)]) for name in ("n1", "n2", "n3")]
        for server in self.servers:
            server.write_configuration([other for other in self.servers if other is not server], sync)

    def start(self):
        for server in self.servers:
            if not server.process:
                server.start()
        return self.wait()

    def wait(self):
        """Waits until all three run and none is behind."""
        eventually(self.is_whole, 2 * PATIENCE, "three servers of which none is behind")
        return self

    def is_whole(self):
        if not all(server.is_healthy() for server in self.servers):
            return False
        groups = [group for server in self.servers for group in server.groups()]
        replicas = [group.get("replicas", []) for group in groups]
        # One group is that of the cluster itself.
        return bool(groups) and all(len(each) == 2 and all(one["current"] for one in each) for each in replicas)

    @property
    def urls(self):
        return [server.url for server in self.servers]

    def named(self, name):
        return next(server for server in self.servers if server.name == name)

    def kill_all(self):
        # All at once: nobody hears that another is gone.
        for server in self.servers:
            server.pause()
        for server in self.servers:
            server.kill()

    def close(self):
        for server in self.servers:
            server.kill()


def copy_store(server, to):
    """A copy of the folder of a server that does not run."""
    shutil.copytree(server.folder, to)
    return to
