"""Broadcasts over three Herald nodes: every subscriber gets each once, in one order, while a node and a server are killed.

Each node and each NATS server has a network of its own.
"""

import json

import pytest

from channels import create, filter_of, send, soon
from cluster_network import network_cluster
from mqtt_device import Identity
from provider import Provider
from service import PATIENCE, eventually

BROADCASTS = 20


@pytest.fixture
def cluster(tmp_path):
    with network_cluster(tmp_path) as cluster:
        yield cluster


def publish(provider, channel, number, accepted):
    """Sends a broadcast until one is accepted; each attempt has a name of its own."""

    def is_accepted():
        name = f"{number}.{len(attempts)}"
        attempts.append(name)
        if send(provider, channel, {"id": name}, expiration=soon()).status != 200:
            return False
        accepted.append(name)
        return True

    attempts = []
    eventually(is_accepted, 2 * PATIENCE, f"broadcast {number}, accepted")


def receive(link, channel, last):
    """The broadcasts that a device gets, up to one of them."""
    ids = []
    while last not in ids:
        ids.append(json.loads(link.next(filter_of(channel), timeout=2 * PATIENCE).payload)["id"])
    return ids


@pytest.mark.slow
def test_every_subscriber_gets_each_broadcast_once_and_in_one_order(cluster):
    nodes = cluster.nodes
    devices = [Identity(node, f"device{number}") for number, node in enumerate(nodes)]
    accepted, moved = [], None
    with Provider(nodes[0], key=nodes[0].provider_key()) as provider:
        channel = create(provider)
        links = [device.stay() for device in devices]
        # A channel that another node has just made is known.
        for link in links:
            assert link.subscribe(filter_of(channel)).reasons == (1,)
        for number in range(BROADCASTS):
            if number == BROADCASTS // 4:
                before = receive(links[2], channel, accepted[-1])
                nodes[2].kill()
                devices[2].service = nodes[1]
                moved = devices[2].stay()
                assert moved.connack.session_present
                arrival = len(accepted)
            if number == BROADCASTS // 2:
                cluster.servers[0].kill()
            publish(provider, channel, number, accepted)
    first, second = (receive(link, channel, accepted[-1]) for link in links[:2])
    assert first == second and len(set(first)) == len(first)
    assert [id for id in first if id in accepted] == accepted
    assert before == accepted[:arrival]
    # The node died before it could note what the device had: the newest may come again, and nothing else.
    after = receive(moved, channel, accepted[-1])
    assert after in (first[first.index(accepted[arrival]):], first[first.index(accepted[arrival - 1]):])
    for device in devices:
        device.close()
