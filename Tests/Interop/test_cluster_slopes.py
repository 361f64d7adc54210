"""Three nodes on three NATS servers, to which all comes and goes as in `test_slopes.py` for an hour, and nothing grows.

Only `make soak` runs this.
"""

import pytest

import slopes
from nats_servers import NATSTrio
from test_cluster_node import options
from test_slopes import MIB, Churn, grows_within, limits_after

#: The size at which a server begins a new block of a stream. Until then it keeps all that was written to the block, also in memory.
BLOCK = 4 * MIB
#: Go frees nothing until its heap is twice as large as what is in use, and keeps threads that have waited for a disk. A node's threads
#: come and go.
HEAP, THREADS = 2, 4


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path).start()
    yield trio
    trio.close()


@pytest.mark.slow
def test_nothing_grows_in_a_cluster(trio, fresh, rounds):
    nodes = [fresh(*options(trio, "node1"), "--journal-size", "1").start()]
    key = str(nodes[0].data / "trust" / "cluster.key")
    nodes += [fresh(*options(trio, name), "--journal-size", "1", "--cluster-key", key).start() for name in ("node2", "node3")]

    def take():
        found = {f"node{number}": of_node(node) for number, node in enumerate(nodes, 1)}
        found |= {f"server{number}": of_server(server) for number, server in enumerate(trio.servers, 1)}
        return {f"{party} {name}": value for party, figures in found.items() for name, value in figures.items()}

    def limits(certificates):
        node = limits_after(certificates) | {"threads": THREADS}
        blocks = BLOCK * trio.servers[0].ask("jsz")["streams"]
        server = node | {
            "memory": HEAP * blocks, "newest": blocks, "files": node["trust"], "records": node["trust"], "consumers": 4,
            "subscriptions": 4,
        }
        return {name: (node if name.startswith("node") else server)[name.split()[1]] for name in take()}

    grows_within(limits, Churn(*nodes), rounds, take)
    assert [node.stop() for node in nodes] == [0, 0, 0]


def of_node(node):
    return slopes.measure(node.pid, [node.data / name for name in ("store", "trust", "run")])


def of_server(server):
    """Beside its process: its files, the bytes of all messages of its streams, and what it holds for its clients."""
    newest, state = newest_blocks(server.folder), server.ask("jsz")
    return slopes.measure(server.pid) | {
        "newest": newest, "files": slopes.size(server.folder) - newest, "records": state["bytes"],
        "consumers": state["consumers"], "subscriptions": server.ask("varz")["subscriptions"],
    }


def newest_blocks(folder):
    """The size of the newest block of each stream and of each Raft log: a server does not compact it."""
    blocks = [[*messages.glob("*.blk")] for messages in folder.rglob("msgs")]
    return sum(slopes.size(max(each, key=lambda block: int(block.stem))) for each in blocks if each)
