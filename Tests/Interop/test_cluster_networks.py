"""Three Herald nodes and three NATS servers, each in a network of its own, that are cut off, paused, killed and restarted.

Providers and devices are at all nodes, and go elsewhere when one fails. Nothing that was accepted is lost or comes out of order,
and what cannot be stored is refused with 503.
"""

import contextlib
import time

import pytest

from cluster_network import Cut, network_cluster
from cluster_roaming import RoamingLoad
from service import PATIENCE, eventually

#: Seconds of a fault: in `make test`, and in `make soak`. A silent server is noticed after 4 to 9 s, a silent node after 15 s.
SHORT, LONG = (1, 2, 3), (1, 3, 6, 10, 20, 30)
#: Seconds in which a node that is in touch again gives up a device that is at another one by now.
GIVES_UP = 5
#: The stream whose leader is looked for.
STREAM = "HERALD_BOX_0"


@pytest.fixture
def cluster(tmp_path):
    with network_cluster(tmp_path) as cluster:
        yield cluster


def play(cluster, rounds, fault):
    """Plays a fault in each round, under load, and shows at the end that nothing is lost. Returns figures."""
    load = RoamingLoad(cluster.nodes, rounds.random("load"))
    try:
        with load:
            load.flows()
            load.arrives()
            load.waits.clear()
            for number in rounds:
                print(f"round {number} at {time.strftime('%X')}")
                fault(cluster, load, rounds.random(number), number)
                # On a busy machine, elections fail and are repeated.
                eventually(cluster.trio.is_whole, 5 * PATIENCE, "three servers of which none is behind")
                load.accept()
                load.flows()
                load.arrives()
        faults = load.faults()
        assert not faults, faults[:5]
        assert all(node.process.poll() is None for node in cluster.nodes)
    except BaseException:
        for node in cluster.nodes:
            print(f"{node}:", *node.lines[-40:], sep="\n")
        raise
    return load.figures()


# Partitions and pauses.


@contextlib.contextmanager
def cut(*pairs):
    """Packets vanish: each pair is of machines that send and of machines that do not get it."""
    cuts = [Cut(*pair) for pair in pairs]
    try:
        yield
    finally:
        for each in cuts:
            each.heal()


def apart(some, others):
    """Packets between machines vanish in both directions."""
    return cut((some, others), (others, some))


@contextlib.contextmanager
def unplugged(machine):
    machine.unplug()
    try:
        yield
    finally:
        machine.plug()


@contextlib.contextmanager
def paused(member):
    member.pause()
    try:
        yield
    finally:
        member.resume()


def fault_of(cluster, chance, number):
    """The kinds of faults in turn, and the node that it cuts off, if there is one."""
    node = chance.choice(cluster.nodes)
    server = cluster.trio.leader(STREAM) if chance.random() < 0.5 else chance.choice(cluster.servers)
    member = chance.choice((server, node))
    print(f"node {node}, server {server}, {member} alone")
    match number % 5:
        case 0:
            return apart([node], cluster.servers), node
        case 1:
            return apart([server], [each for each in cluster.servers if each is not server]), None
        case 2:
            return apart([server, node], cluster.others(server, node)), node
        case 3:
            pair = [member], cluster.others(member)
            return cut(chance.choice((pair, pair[::-1]))), None
        case 4 if chance.random() < 0.25:
            return unplugged(member.machine), None
        case 4:
            return paused(member), None


@pytest.mark.slow
def test_partitions_and_pauses_cost_nothing(cluster, rounds):
    given_up = []

    def part(cluster, load, chance, number):
        fault, node = fault_of(cluster, chance, number)
        with fault:
            former = node and load.leave(node)
            time.sleep(chance.choice(SHORT if rounds.are_few else LONG))  # pace: how long the fault lasts
            if chance.random() < 0.5:
                # Until the others have elected leaders.
                load.flows()
        healed = time.monotonic()
        if former:
            former.wait()
            given_up.append(time.monotonic() - healed)

    figures = play(cluster, rounds, part)
    slowest = max(given_up, default=0)
    rounds.report(**figures, left=len(given_up), given_up_after=f"{slowest:.1f} s", lost=0)
    # Beside other tests, the machine decides.
    assert rounds.are_few or slowest <= GIVES_UP


# Nodes that are killed.


@pytest.mark.slow
def test_killed_nodes_cost_nothing(cluster, rounds):
    def kill(cluster, load, chance, _):
        """One node is killed, or two; in every second case, the others serve alone for a while."""
        nodes = chance.sample(cluster.nodes, chance.choice((1, 1, 1, 2)))
        for node in nodes:
            node.kill()
        if chance.random() < 0.5:
            load.flows()
            load.arrives()
        for node in nodes:
            node.start()

    rounds.report(**play(cluster, rounds, kill), lost=0)


# All six are restarted one by one.


@pytest.mark.slow
def test_a_rolling_restart_costs_nothing(cluster, rounds):
    def restart(cluster, load, chance, _):
        for member in chance.sample((*cluster.servers, *cluster.nodes), 6):
            member.stop()
            member.start()
            cluster.trio.wait()
            load.accept()
            load.flows()

    rounds.report(**play(cluster, rounds, restart), lost=0)
