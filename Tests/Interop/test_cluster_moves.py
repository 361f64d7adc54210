"""Three nodes between which devices move while providers post at all of them: nothing is lost, refused or out of order."""

import pytest

from cluster_moves import Moves, Visit, disorder
from nats_servers import NATSTrio
from service import TOPIC, Service
from test_cluster_node import options
from test_crash_ledger import Ledger


@pytest.fixture(scope="module")
def trio(tmp_path_factory):
    trio = NATSTrio(tmp_path_factory.mktemp("trio")).start()
    yield trio
    trio.close()


@pytest.fixture(scope="module")
def nodes(trio, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    nodes = [Service(folder / f"node{number}", *options(trio, f"node{number}")) for number in (1, 2, 3)]
    key = str(nodes[0].start().data / "trust" / "cluster.key")
    for node in nodes[1:]:
        node.start("--cluster-key", key)
    yield nodes
    for node in nodes:
        node.close()


@pytest.mark.slow
def test_devices_that_move_between_nodes_under_load_miss_nothing(nodes, rounds):
    moves = Moves(nodes, rounds, devices=16, clones=4)
    faults = moves.play()
    rounds.report(**moves.figures())
    assert not faults, "\n".join(faults[:5])
    assert all(node.process.poll() is None for node in nodes)


class TestDisorder:
    """The check of the order finds what it is there to find."""

    def visits(self, *steps):
        """Steps: `a+` posts a, `a=` accepts it; `1!` begins the connection 1, and `1a` shows a on it."""
        ledger, visits = Ledger(), {}
        for first, second in steps:
            match second:
                case "+": ledger.begin(first, ("device", TOPIC))
                case "=": ledger.end(first, 200)
                case "!": visits[first] = Visit(ledger.moment())
                case _: visits[first].came.append((ledger.moment(), second))
        return disorder(list(visits.values()), ledger.entries)

    def test_an_older_notification_after_a_newer_one_is_found(self):
        assert self.visits("a+", "a=", "b+", "b=", "1!", "1b", "1a") == ["a came after a newer one"]

    def test_it_is_found_on_a_later_connection(self):
        assert self.visits("1!", "a+", "a=", "b+", "1b", "b=", "2!", "2a") == ["a came after a newer one"]

    def test_two_connections_at_once_have_no_order(self):
        assert not self.visits("1!", "2!", "a+", "a=", "b+", "b=", "1b", "2a")

    def test_notifications_that_were_posted_at_once_have_no_order(self):
        assert not self.visits("a+", "b+", "b=", "a=", "1!", "1b", "1a")

    def test_what_was_not_accepted_is_not_newer(self):
        assert not self.visits("a+", "a=", "b+", "1!", "1b", "1a")

    def test_two_deliveries_on_one_connection_are_found(self):
        assert self.visits("a+", "a=", "1!", "1a", "1a") == ["a came twice on one connection"]
