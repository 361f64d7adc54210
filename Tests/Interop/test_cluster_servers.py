"""One Herald node while the NATS servers below it are killed, and while their disks are full or fail.

Nothing that it accepted is lost, what it cannot store it refuses with 503, and it goes on by itself.
"""

import contextlib

import pytest

from cluster_load import ClusterLoad
from disk_faults import DiskFault
from nats_servers import NATSTrio
from private_mounts import in_private_mounts, mount
from service import PATIENCE, Service, eventually
from test_cluster_node import options
from test_engine_disks import fill, start_again

#: The stream whose leader is looked for.
STREAM = "HERALD_BOX_0"
#: Refusals that show that nothing can be stored.
ENOUGH = 50


@contextlib.contextmanager
def node_on(trio, folder):
    """A node on servers that were started."""
    node = Service(folder / "data", *options(trio)).start()
    try:
        yield node
    finally:
        # pytest shows it if the test has failed.
        print(*node.lines[-40:], sep="\n")
        node.close()


def play(tmp_path, rounds, fault, trio=None):
    """Plays a fault of the servers in each round, under load, and shows at the end that nothing is lost."""
    trio = trio or NATSTrio(tmp_path)
    try:
        with node_on(trio.start(), tmp_path) as node:
            load = ClusterLoad(node, rounds.random("load"))
            with load:
                load.flows()
                load.waits.clear()
                for number in rounds:
                    fault(trio, load, rounds.random(number), number)
                    trio.wait()
            faults = load.faults()
            assert not faults, faults[:5]
            # It has not ended meanwhile.
            assert node.stop() == 0
    finally:
        trio.close()
    rounds.report(**load.figures(), lost=0)


def kill_one(trio, load, chance, _):
    """A server is killed, the leader of a stream in every second case. In every second case it is back before the others have elected."""
    server = trio.leader(STREAM) if chance.random() < 0.5 else chance.choice(trio.servers)
    server.kill()
    if chance.random() < 0.5:
        load.flows()
        server.start()
    else:
        server.start()
        load.flows()


def kill_all(trio, load, *_):
    trio.kill_all()
    trio.launch()
    load.flows()


@pytest.mark.slow
def test_killed_servers_cost_nothing_that_was_accepted(tmp_path, rounds):
    play(tmp_path, rounds, kill_one)


@pytest.mark.slow
def test_three_servers_killed_at_once_cost_nothing_that_was_accepted(tmp_path, rounds):
    play(tmp_path, rounds, kill_all)


def full(trio, load, servers):
    """The disks of some servers are full. The servers are started again when there is room."""
    ballasts = [fill(server) for server in servers]
    if len(servers) == 1:
        load.flows()
    else:
        before = load.count(503)
        eventually(lambda: load.count(503) >= before + ENOUGH, 2 * PATIENCE, "refusals")
    for ballast in ballasts:
        ballast.unlink()
    for server in servers:
        start_again(server)
    load.flows()


def failing(trio, load, server):
    """Each sync of a server fails. The others go on."""
    fault = DiskFault(server, "fsync,fdatasync", "error=EIO")
    try:
        load.flows()
    finally:
        fault.close()
    start_again(server)
    load.flows()


def spoil_disks(trio, load, chance, number):
    """All disks are full, or one, or one fails, in turn."""
    match number % 3:
        case 0: full(trio, load, trio.servers)
        case 1: failing(trio, load, trio.leader(STREAM))
        case 2: full(trio, load, [trio.leader(STREAM)])


@pytest.mark.slow
@in_private_mounts
def test_bad_disks_cost_nothing_that_was_accepted(tmp_path, rounds):
    trio = NATSTrio(tmp_path)
    for server in trio.servers:
        server.folder.mkdir()
        mount(server.folder, "tmpfs")
    play(tmp_path, rounds, spoil_disks, trio)
