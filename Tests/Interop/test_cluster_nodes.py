"""Several Herald nodes on three NATS servers: a provider posts at any node, and a device is connected to any."""

import pytest

from nats_servers import NATSTrio
from parties import assert_accepted
from provider import Provider, listening_device
from service import PATIENCE, eventually, herald
from test_cluster_node import options, refusal

#: How often a device moves from node to node.
MOVES = 9


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path).start()
    yield trio
    trio.close()


@pytest.fixture
def nodes(trio, fresh):
    first = fresh(*options(trio, "node1")).start()
    trio.key = key = str(first.data / "trust" / "cluster.key")
    return [first] + [fresh(*options(trio, f"node{number}"), "--cluster-key", key).start() for number in (2, 3)]


def ids(device):
    return [message.json["id"] for message in device.messages]


def push(provider, device, id, **headers):
    """Posts until it is accepted: a node may not have heard of a new token yet, or a server is gone."""
    eventually(lambda: provider.push(device.token, {"id": id}, **headers).status == 200, 2 * PATIENCE, f"{id}, accepted")


def test_a_notification_reaches_its_device_at_any_node(nodes):
    device = listening_device(nodes[1])
    certificate = nodes[0].provider_certificate()
    for number, node in enumerate(nodes):
        with Provider(node, certificate) as provider:
            push(provider, device, f"stored{number}")
            eventually(lambda id=f"stored{number}": id in ids(device))
            push(provider, device, f"once{number}", expiration=0)
            eventually(lambda id=f"once{number}": id in ids(device))
    assert len(ids(device)) == len(set(ids(device)))
    # A node that stops says so: its devices go elsewhere at once, and the others serve on.
    nodes[1].stop()
    device.stop()
    device.service = nodes[2]
    with Provider(nodes[0], certificate) as provider:
        push(provider, device, "while away")
        device.start()
        eventually(lambda: "while away" in ids(device))
        push(provider, device, "after")
        eventually(lambda: "after" in ids(device))
    device.stop()


def test_a_connected_device_gets_all_that_are_posted_at_once_at_one_node(nodes):
    device = listening_device(nodes[1])
    for place, node in (("elsewhere", nodes[0]), ("here", nodes[1])):
        with Provider(node, nodes[0].provider_certificate()) as provider:
            push(provider, device, f"first {place}")
            eventually(lambda: f"first {place}" in ids(device))
            burst = [f"{place} {number}" for number in range(20)]
            streams = [provider.send(device.token, {"id": id}) for id in burst]
            assert [provider.answer(stream).status for stream in streams] == [200] * len(burst)
            eventually(lambda: len(ids(device)) >= ids(device).index(f"first {place}") + 1 + len(burst))
            assert ids(device)[-len(burst):] == burst
    device.stop()


def test_a_device_moves_under_load_and_misses_nothing(nodes):
    device = listening_device(nodes[0])
    with Provider(nodes[2], nodes[0].provider_certificate()) as provider:
        push(provider, device, "first")
        for move in range(MOVES):
            push(provider, device, f"before {move}")
            device.stop()
            push(provider, device, f"between {move}")
            device.service = nodes[(move + 1) % len(nodes)]
            device.start()
            push(provider, device, f"after {move}")
            # The newest of an app alone is kept.
            eventually(lambda id=f"after {move}": id in ids(device))
    device.stop()


def test_a_killed_node_leaves_nothing_behind(nodes):
    device = listening_device(nodes[1])
    with Provider(nodes[0], nodes[0].provider_certificate()) as provider:
        push(provider, device, "first")
        eventually(lambda: "first" in ids(device))
        nodes[1].kill()
        device.stop()
        # Stored at once: nobody waits for the dead node.
        assert_accepted(provider.push(device.token, {"id": "for a dead node"}))
        device.service = nodes[2]
        device.start()
        eventually(lambda: "for a dead node" in ids(device))
        # It comes back under its name without waiting, since the folder is its own.
        nodes[1].start()
        device.stop()
        device.service = nodes[1]
        device.start()
        push(provider, device, "back")
        eventually(lambda: "back" in ids(device))
    device.stop()


def test_two_folders_with_one_name_are_refused(trio, nodes, tmp_path):
    key = str(nodes[0].data / "trust" / "cluster.key")
    reason = refusal(tmp_path / "double", *options(trio, "node2"), "--cluster-key", key)
    assert "another node with the name node2 serves this cluster" in reason and "--node" in reason
    eventually(lambda: herald("status", "--data", nodes[1].data, check=False).returncode == 0, what="a healthy node")
