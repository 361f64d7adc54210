"""NATS servers in a virtual machine whose disk loses what was not flushed: all three of a cluster, or one beside two on this machine.

A server of the machine has a loopback address here, at which clients and other servers reach it; the machine itself reaches nobody.
"""

import contextlib
import shutil

from guest import BOOT, Machine, NoGuest, make_disk, make_initial, make_system_disk, run
from nats_servers import CLIENT, CLUSTER, CONFIGURATION, MONITOR, NATS_SERVER, ROUTE, NATSServer, NATSTrio
from service import eventually

#: The disk of the machine.
DISK_MIB = 512
#: How servers sync: as Herald demands, and as they do by default.
SYNCS = ("always", "2m")
#: Addresses of the servers in the machine, and of others that it cannot reach: a server counts its routes to know its cluster.
INSIDE = ("10.0.2.15", "10.0.2.16", "10.0.2.17")

SERVE = """
ip address add 10.0.2.16/24 dev eth0
ip address add 10.0.2.17/24 dev eth0
folder="$(sed -n 's/.* servers=//p' /proc/cmdline)"
for name in /system/$folder/*; do chroot /system /nats-server --config "${name#/system}" 2>&1 & done
wait
echo "guest: all servers ended"
"""


def make_machine(folder):
    """Makes what all machines have in common: disks with the servers, with each choice of their configuration, and with nothing."""
    make_initial(folder, SERVE)
    system = folder / "system"
    for sync in SYNCS:
        for names in (("n1", "n2", "n3"), ("n3",)):
            choice = system / f"{len(names)}-{sync}"
            choice.mkdir(parents=True)
            for name in names:
                (choice / name).write_text(configuration(name, sync))
    run("strip", "--strip-debug", "-o", system / "nats-server", NATS_SERVER)
    shutil.copy(shutil.which("busybox"), system / "busybox")
    make_system_disk(folder)
    (folder / "empty").mkdir()
    make_disk(folder / "data.img", folder / "empty", DISK_MIB)


def configuration(name, sync):
    address = INSIDE[int(name[1]) - 1]
    routes = ", ".join(f'"nats://{other}:{ROUTE}"' for other in INSIDE if other != address)
    return CONFIGURATION.format(
        name=name, address=address, client=CLIENT, monitor=MONITOR, folder=f"/data/{name}", sync=sync,
        cluster=CLUSTER.format(address=address, route=ROUTE, routes=routes),
    )


class NATSGuest(Machine):
    """A machine with the servers of a cluster that are named. They are healthy when `wait_for` says so."""

    def __init__(self, folder, disk, servers, sync):
        super().__init__(folder, disk, f"{servers[0].folder.parent.name}.socket", f" servers={len(servers)}-{sync}", memory=640)
        self.servers = servers

    def switch_on(self):
        super().switch_on(",".join(
            f"hostfwd=tcp:{server.address}:{port}-{INSIDE[int(server.name[1]) - 1]}:{port}"
            for server in self.servers for port in (CLIENT, ROUTE, MONITOR)
        ))

    def wait_for(self, condition):
        """Waits until something holds of the servers."""
        with contextlib.suppress(AssertionError):
            if eventually(lambda: condition() or (self.process.poll() is not None and "ended"), BOOT) != "ended":
                return
        raise NoGuest("\n".join([*self.lines[:20], "…", *self.lines[20:][-20:]]))
