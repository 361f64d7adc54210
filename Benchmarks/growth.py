"""The cost of growth: the machines that so many devices need, and what is full first.

    python3 Benchmarks/growth.py [DEVICES…]       the tables of docs/cluster.md, or those for other numbers of devices

It computes from `costs.json`: costs that were measured, and a use of the service that is assumed. `growth_check.py` measures them.
Beyond a cell's devices, whole cells are added: clusters that share nothing but keys.
"""

import dataclasses
import json
import math
import pathlib
import sys

COSTS = json.loads(pathlib.Path(__file__).with_name("costs.json").read_text())
DEVICES = (10**5, 10**6, 10**7, 10**8, 10**9)
DAY = 86_400
GB = 1e9
#: Nodes and NATS servers of the smallest cluster.
LEAST = 3
#: Partitions of a cluster at most, and the subjects of a stream from which on NATS works differently.
PARTITIONS, SUBJECTS = 64, 1_000_000


def cost(name):
    return COSTS["measured"][name]["value"]


def use(name):
    return COSTS["assumed"][name]["value"]


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cluster: its devices and its Herald nodes, beside three NATS servers. Rates are those of the peak, in a second."""

    devices: int
    nodes: int = LEAST

    @property
    def connected(self):
        return self.devices * use("connected_share")

    @property
    def posts(self):
        return self.devices * use("notifications") / DAY * use("peak")

    @property
    def arrivals(self):
        return self.devices * use("arrivals") / DAY * use("peak")

    @property
    def rings(self):
        """Notifications whose device is connected to another node."""
        return self.posts * (1 - use("away_share")) * (self.nodes - 1) / self.nodes

    @property
    def followed(self):
        """Records that every node follows."""
        return self.arrivals * use("followed_by_arrival")

    @property
    def node_cores(self):
        """Cores of each node."""
        shared = self._each_post("node_us") + self._each_arrival("node_us") + self.rings * cost("ring_nodes_us")
        return shared / self.nodes / 1e6 + self.followed * cost("followed_node_us") / 1e6

    @property
    def server_cores(self):
        """Cores of each NATS server."""
        follow = self.followed * self.nodes * cost("followed_servers_us")
        shared = self._each_post("servers_us") + self._each_arrival("servers_us") + self.rings * cost("ring_servers_us")
        return (shared + follow) / 3 / 1e6

    def _each_post(self, unit):
        away = use("away_share")
        return self.posts * (away * cost(f"stored_{unit}") + (1 - away) * cost(f"delivered_{unit}"))

    def _each_arrival(self, unit):
        return self.arrivals * (cost(f"arrival_{unit}") + cost(f"departure_{unit}"))

    @property
    def connection_memory(self):
        """Of all nodes together, in bytes."""
        return self.connected * cost("connected_node_bytes")

    @property
    def directory_memory(self):
        """In each node: all registrations, and who holds which device."""
        return self.devices * cost("known_node_bytes") + self.connected * cost("table_node_bytes")

    @property
    def node_memory(self):
        return self.directory_memory + self.connection_memory / self.nodes

    @property
    def server_memory(self):
        """In each NATS server."""
        return (self.devices * cost("known_server_bytes") + self.connected * cost("connected_server_bytes")
                + self.devices * use("waiting") * cost("waiting_server_bytes"))

    @property
    def server_disk(self):
        return self.devices * use("waiting") * cost("waiting_disk_bytes")

    @property
    def server_writes(self):
        """Bytes that each NATS server writes in a second."""
        return self._each_post("written_bytes")

    @property
    def server_network(self):
        """Bytes that come to the NATS servers and go between them, in a second."""
        return self.posts * use("request_bytes") * 3 + self.rings * use("request_bytes") * 2

    @property
    def subjects(self):
        """The largest kind of subjects: claims and waiting notifications."""
        return self.connected + self.devices * use("waiting")

    @property
    def everybody_returns(self):
        """Seconds in which all that were connected can connect again: nodes and servers use all cores."""
        nodes = self.connected * cost("arrival_node_us") / 1e6 / (self.nodes * use("node_cores"))
        servers = self.connected * cost("arrival_servers_us") / 1e6 / (3 * use("server_cores"))
        return max(nodes, servers)

    @property
    def fits(self):
        return self.node_memory <= planned("node_memory") and self.node_cores <= planned("node_cores")

    def fullest(self):
        """The resource of the machines that is fullest, and its share."""
        shares = {
            "memory of the nodes": self.node_memory / (use("node_memory") * GB),
            "cores of the nodes": self.node_cores / use("node_cores"),
            "memory of the servers": self.server_memory / (use("server_memory") * GB),
            "cores of the servers": self.server_cores / use("server_cores"),
        }
        return max(shares.items(), key=lambda item: item[1])


def planned(name):
    """The part of a machine that is planned for: bytes or cores."""
    return use(name) * GB * use("used_memory") if name.endswith("memory") else use(name) * use("used_cores")


def cell_for(devices):
    """The cell with the fewest nodes; None if no number of nodes is enough."""
    if Cell(devices).directory_memory >= planned("node_memory"):
        return None
    return next((cell for nodes in range(LEAST, 2000) if (cell := Cell(devices, nodes)).fits), None)


def growth(sizes):
    """The table of what each part uses, as lines of Markdown."""
    cells = [math.ceil(size / use("cell")) for size in sizes]
    each = [cell_for(size // count) for size, count in zip(sizes, cells)]
    if None in each:
        sys.exit("a cell has too many devices for its nodes: see `cell` and `node_memory` in costs.json")

    def row(name, text):
        return f"| {name} | " + " | ".join(text(cell, count) for cell, count in zip(each, cells)) + " |"

    yield "| devices | " + " | ".join(f"{size:,}" for size in sizes) + " |"
    yield "|---" * (len(sizes) + 1) + "|"
    yield row("cells", lambda cell, count: f"{count:,}")
    yield row("Herald nodes, NATS servers", lambda cell, count: f"{cell.nodes * count:,}, {3 * count:,}")
    yield row("notifications a second", lambda cell, count: number(cell.posts * count))
    yield row("arrivals a second", lambda cell, count: number(cell.arrivals * count))
    yield "| **in each cell** |" + " |" * len(sizes)
    yield row("memory of a node: connections, while all nodes run (three nodes: plan half as much again)",
              lambda cell, _: gigabytes(cell.connection_memory / cell.nodes))
    yield row("memory of a node: registrations and claims of all", lambda cell, _: gigabytes(cell.directory_memory))
    yield row("cores of a node", lambda cell, _: f"{cell.node_cores:.2f}")
    yield row("memory of a NATS server", lambda cell, _: gigabytes(cell.server_memory))
    yield row("cores of a NATS server", lambda cell, _: f"{cell.server_cores:.2f}")
    yield row("a NATS server's disk, for what waits", lambda cell, _: gigabytes(cell.server_disk))
    yield row("bytes a NATS server writes in a second", lambda cell, _: megabytes(cell.server_writes))
    yield row("network of the NATS servers in a second", lambda cell, _: megabytes(cell.server_network))
    yield row("partitions", lambda cell, _: str(max(4, 2 ** math.ceil(math.log2(cell.subjects / SUBJECTS)))))
    yield row("everybody returns: seconds", lambda cell, _: number(cell.everybody_returns))
    yield row("a node starts: seconds until it knows all claims",
              lambda cell, _: number(cell.connected * cost("table_read_us") / 1e6))
    yield row("fullest", lambda cell, _: "{}, {:.0%}".format(*cell.fullest()))


def limits():
    """The limits of a cell, the lowest first: each with the devices at which it is reached."""
    one = Cell(1)
    found = {
        "memory of each node: registrations and claims of all devices": planned("node_memory") / one.directory_memory,
        "memory of each NATS server": planned("server_memory") / one.server_memory,
        "cores of the NATS servers": most(lambda cell: cell.server_cores <= planned("server_cores")),
        f"subjects: {PARTITIONS} partitions of {SUBJECTS:,}": PARTITIONS * SUBJECTS / one.subjects,
    }
    yield "| limit of a cell | devices |"
    yield "|---|---|"
    for name, devices in sorted(found.items(), key=lambda item: item[1]):
        yield f"| {name} | {rounded(devices):,} |"


def assumptions():
    """The use of the service that the tables assume."""
    yield "| assumed | |"
    yield "|---|---|"
    for one in COSTS["assumed"].values():
        yield f"| {one['of']} | {one['value']:,} |"


def most(holds):
    """Finds the most devices of a cell for which something holds, with as many nodes as their connections need."""
    low, high = 1000, 10**12
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        nodes = max(LEAST, math.ceil(Cell(middle).connection_memory / planned("node_memory")))
        low, high = (middle, high) if holds(Cell(middle, nodes)) else (low, middle)
    return low


def rounded(value):
    """With two digits."""
    digits = 10 ** max(0, int(math.log10(value)) - 1)
    return int(value / digits) * digits


def number(value):
    return f"{value:.1f}" if value < 10 else f"{rounded(value):,}"


def gigabytes(value):
    return f"{value / GB:.2f} GB" if value < 10 * GB else f"{value / GB:.0f} GB"


def megabytes(value):
    return f"{value / 1e6:.1f} MB"


def main():
    sizes = [int(float(text)) for text in sys.argv[1:]] or DEVICES
    print("\n".join([*growth(sizes), "", *limits(), "", *assumptions()]))


if __name__ == "__main__":
    main()
