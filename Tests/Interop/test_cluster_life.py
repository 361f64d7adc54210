"""Life with a cluster: drills at all nodes, an upgrade of the NATS servers under load, nodes that stand still, and everybody returns
at once."""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import ssl
import urllib.request

import mqtt_packets as mqtt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certificates import Authority, uri
from cluster import Cluster
from cluster_load import ClusterLoad
from mqtt_device import Identity
from mqtt_packets import Kind, Reason
from nats_servers import pause
from parties import assert_refused
from provider import Provider, away_device, listening_device
from service import PATIENCE, TOPIC, Service, eventually, herald

#: More devices than a node lets arrive at once, which are 64.
CROWD = 120
SERVER_UNAVAILABLE, SERVER_BUSY = 0x88, 0x89
#: The devices that move away from a node that stands still: more than one, since each is a race when the node goes on.
MOVERS = 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("life"), 2)
    try:
        yield cluster.start()
    finally:
        cluster.close()


def drill(node, *words):
    return json.loads(herald("drill", *words, "--data", node.data, "--json").stdout)


def test_a_drill_is_in_force_at_all_nodes_also_at_one_that_starts_meanwhile(cluster):
    first, second = cluster.nodes
    device, certificate = away_device(first), first.provider_certificate()
    words = ("refuse", "--reason", "TooManyRequests", "--token", device.token, "--for", "10m")
    started = drill(first, "start", *words)
    third = Service(cluster.folder / "late", *first.options[:4], "--node", "late")
    try:
        third.start("--cluster-key", str(first.data / "trust" / "cluster.key"))
        nodes = (first, second, third)
        for node in nodes:
            with Provider(node, certificate) as provider:
                assert_refused(provider.push(device.token, {}), 429, "TooManyRequests")
        # A node that does not answer within a second is not counted.
        (listed,) = eventually(lambda: [one for one in drill(third, "list") if len(one["nodes"]) == len(nodes)], what="all nodes")
        assert (listed["id"], listed["hits"], listed["seed"]) == (started["id"], len(nodes), started["seed"])
        assert listed["nodes"] == ["late", "node1", "node2"]
        # The number of the next one is another one, wherever it starts, and each node can stop both.
        other = drill(second, "start", "latency", "--latency", "1ms")
        assert other["id"] != started["id"]
        (stopped,) = drill(third, "stop", str(started["id"]))
        assert 1 <= stopped["hits"] <= len(nodes)
        for node in nodes:
            with Provider(node, certificate) as provider:
                eventually(lambda p=provider: p.push(device.token, {}).status == 200, what=f"no drill at {node.data.name}")
        assert [entry["id"] for entry in drill(first, "stop", "--all")] == [other["id"]]
        eventually(lambda: drill(second, "list") == drill(third, "list") == [], what="the end of all drills")
        assert "no drill" in herald("drill", "stop", str(other["id"]), "--data", second.data, check=False).stderr
    finally:
        third.stop()
        third.close()


def test_a_nats_server_is_upgraded_under_load(cluster):
    node = cluster.nodes[0]
    with ClusterLoad(node, random.Random(1)) as load:
        load.flows()
        server = cluster.trio.leader("HERALD_BOX_0")
        server.lame_duck()
        load.flows()
        server.start()
        cluster.trio.wait()
        load.flows()
    assert not load.faults()


class Crowd:
    """Devices that connect at once, again and again until they are admitted."""

    def __init__(self, node, count):
        self.port = node.listeners["device"]
        authority, key = Authority.of_service(node, "device"), ec.generate_private_key(ec.SECP256R1())
        self.contexts = []
        for number in range(count):
            path = node.data.parent / f"crowd-{number}.pem"
            authority.issue(path, subject=f"crowd-{number}", names=[uri(f"urn:herald:device:crowd-{number}")], key=key)
            context = ssl.create_default_context(cafile=str(node.ca))
            context.load_cert_chain(str(path))
            self.contexts.append(context)
        self.refusals, self.admitted = [], 0

    async def come(self):
        """Connects all, and leaves when all are in."""
        writers = await asyncio.gather(*(self._connect(number) for number in range(len(self.contexts))))
        for writer in writers:
            writer.close()

    async def _connect(self, number):
        while True:
            options = {"ssl": self.contexts[number], "server_hostname": "localhost", "ssl_handshake_timeout": PATIENCE}
            writer = None
            try:
                # The service, which has a limit of time for handshakes, may end one.
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)
                writer.write(mqtt.connect(f"crowd-{number}", 5, keep_alive=600))
                head = await reader.readexactly(2)
                packet = mqtt.read_packet(head[0], await reader.readexactly(head[1]), 5, head[1])
                assert packet.kind == Kind.CONNACK
                if packet.reason == 0:
                    self.admitted += 1
                    return writer
                self.refusals.append(packet)
            except (asyncio.IncompleteReadError, OSError):
                pass
            if writer:
                writer.close()
            await asyncio.sleep(0.5)  # pace: a refused client comes again


def test_everybody_returns_at_once_and_waits_for_a_turn(cluster):
    first, second = cluster.nodes
    crowd = Crowd(first, CROWD)

    def arrivals():
        with urllib.request.urlopen(f"http://127.0.0.1:{first.listeners['console']}/metrics", timeout=PATIENCE) as answer:
            return dict(re.findall(r"^herald_device_arrivals_(\w+) (\d+)", answer.read().decode(), re.M))

    async def play():
        # Nothing is answered: the first ones are on their way in, and the others wait.
        for server in cluster.trio.servers:
            server.pause()
        returning = asyncio.create_task(crowd.come())
        try:
            await asyncio.to_thread(eventually, lambda: int(arrivals()["waiting"]) > 0, what="devices that wait")
        finally:
            for server in cluster.trio.servers:
                server.resume()
        await asyncio.wait_for(returning, 3 * PATIENCE)

    asyncio.run(play())
    assert crowd.admitted == CROWD
    # Some may have waited for too long, or have met a node that had lost its NATS server.
    assert {each.reason for each in crowd.refusals} <= {SERVER_BUSY, SERVER_UNAVAILABLE}
    eventually(lambda: arrivals()["waiting"] == "0", what="the end of the queue")
    # Notifications flow as before.
    device = listening_device(second)
    with Provider(first, first.provider_certificate()) as provider:
        eventually(lambda: provider.push(device.token, {"id": "after"}).status == 200, 2 * PATIENCE)
        eventually(lambda: [message.json["id"] for message in device.messages])
    device.stop()


@contextlib.contextmanager
def standing_still(node):
    pause(node.pid)
    try:
        yield
    finally:
        os.kill(node.pid, signal.SIGCONT)


def assert_served(cluster, links, tokens):
    """Each device gets a notification from each node, on the connection that it has, and nothing else comes."""
    for node in cluster.nodes:
        with Provider(node, cluster.nodes[0].provider_certificate()) as provider:
            for link, token in zip(links, tokens, strict=True):
                answer = provider.push(token)
                assert answer.status == 200, f"{node.data.name} answers {answer.status} {answer.reason}"
                link.notification()
                link.settled()


def test_what_a_node_was_asked_before_it_stood_still_does_not_happen_after_the_device_has_moved(cluster):
    first, second = cluster.nodes
    devices = [Identity(first, f"mover-{number}") for number in range(MOVERS)]
    olds = [device.stay() for device in devices]
    tokens = [link.register() for link in olds]
    with standing_still(first):
        for number, link in enumerate(olds):
            settings = mqtt.publish(f"apps/{TOPIC}/settings", b'{"enabled":false}', qos=1, packet_id=9)
            link.send(settings if number % 2 else mqtt.unsubscribe(9, f"apps/{TOPIC}/#"))
        for device in devices:
            device.service = second
        news = [device.stay() for device in devices]
        # The others count on the session that CONNACK has promised them.
        assert all(link.connack.session_present for link in news)
        again = range(0, MOVERS, 4), range(1, MOVERS, 4)
        assert all(news[number].register() == tokens[number] for numbers in again for number in numbers)
    for link in olds:
        packets = link.until_closed()
        assert not [found for found in packets if found.kind in (Kind.UNSUBACK, Kind.PUBACK) and found.reason < 0x80]
    assert_served(cluster, news, tokens)
    for device in devices:
        device.close()


def test_a_connect_that_a_node_finds_after_it_stood_still_takes_nothing_over(cluster):
    first, second = cluster.nodes
    devices = [Identity(first, f"impatient-{number}") for number in range(MOVERS)]
    wires = [device.wire() for device in devices]
    with standing_still(first):
        for number, (device, wire) in enumerate(zip(devices, wires)):
            wire.send(mqtt.connect(device.id))
            device.service = second
            if number % 2:
                # The client says that it gives up. The others have lost their network, so the node cannot hear of it.
                wire.close()
        news = [device.connect() for device in devices]
        tokens = [link.register() for link in news]
        # Longer than the time for which a client is sure to wait.
        news[0].quiet(3)
    for wire in wires[::2]:
        # On a busy machine, the handshake or the CONNECT may have been late before the node stood still: then nothing is said.
        assert {packet.reason for packet in wire.until_closed()} <= {Reason.SERVER_UNAVAILABLE}
    assert_served(cluster, news, tokens)
    for device in devices:
        device.close()
