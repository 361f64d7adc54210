"""Somebody who holds the credentials of the NATS account, and not the cluster key: reads, writes garbage, forges, moves and repeats."""

import asyncio
import json
import socket
import subprocess

import nats
import pytest

from nats_servers import CLIENT, NATSTrio
from parties import assert_accepted
from provider import Provider, away_device, listening_device
from service import PATIENCE, eventually, herald
from test_cluster_node import options
from test_cluster_nodes import nodes, trio
from test_cluster_whole import ask

#: Header blocks that a writer can put before a payload, and that neither a server nor Herald would write.
BLOCKS = [
    b"garbage", b"XATS\r\n\r\n", b"NATS/1.0\nA: b\r\n\r\n", b"NATS/1.0 503 No\r\nA: b\r\n\r\n", b"NATS/1.0 404 No Results\r\nA: b\r\n\r\n",
    b"NATS/1.0 100 Idle Heartbeat\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b", b"NATS/1.0\r\nNats-Subject: z\r\nNats-Sequence: 1\r\n\r\n",
]


def publish(server, subject, payload, block=b""):
    """Publishes bytes as they stand, which a library would not."""
    with socket.create_connection((server.address, CLIENT), timeout=PATIENCE) as connection, connection.makefile("rb") as answers:
        answers.readline()
        connection.sendall(b'CONNECT {"headers":true,"verbose":false}\r\n')
        head = b"HPUB %s %d %d" % (subject.encode(), len(block), len(block) + len(payload)) if block else b"PUB %s %d" % (subject.encode(), len(payload))
        connection.sendall(head + b"\r\n" + block + payload + b"\r\nPING\r\n")
        while not (line := answers.readline()).startswith(b"PONG"):
            assert line and not line.startswith(b"-ERR"), line


class Stranger:
    """Reads and writes the streams with a client of NATS's own."""

    def __init__(self, trio):
        self.server = trio.servers[0]

    def _run(self, work):
        async def visit():
            client = await nats.connect(self.server.url)
            try:
                return await work(client, client.jetstream(timeout=PATIENCE))
            finally:
                await client.close()

        return asyncio.run(visit())

    def records(self):
        """All records by stream and subject, as (payload, headers)."""

        async def read(_, stream):
            found = {}
            for info in await stream.streams_info():
                state = (await stream.stream_info(info.config.name, subjects_filter=">")).state
                for subject in state.subjects or ():
                    message = await stream.get_last_msg(info.config.name, subject, direct=True)
                    found[info.config.name, subject] = (message.data or b"", message.headers or {})
            return found

        return self._run(read)

    def write(self, messages):
        async def publish(client, _):
            for subject, payload, headers in messages:
                await client.publish(subject, payload, headers=headers)
            await client.flush()

        self._run(publish)


def total(node):
    """The number of things that a node has set aside, by the socket in its data folder: its port may be in another network."""
    control = node.data / "run" / "control.sock"
    command = ["curl", "--silent", "--show-error", "--fail", "--unix-socket", control, "http://localhost/metrics"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("herald_cluster_set_aside_total{"))


def assert_named(node, word):
    """Health, problems, metrics and log of a node say that somebody writes to NATS."""
    def is_said():
        status = herald("status", "--data", node.data, check=False)
        return status.returncode == 0 and "somebody who is not a node" in status.stdout and word in status.stdout

    eventually(is_said, what=f"a status with {word}")
    problems = lambda: json.loads(ask(node, "/v1/problems")[1])["items"]
    eventually(lambda: any("somebody who is not a node" in problem["what"] for problem in problems()), what="the problem")
    eventually(lambda: total(node) > 0, what="the count")
    eventually(lambda: any("no node wrote" in line or "no node sent" in line for line in node.lines), what="the line in the log")


def test_whoever_holds_the_account_reads_forges_and_stops_nothing(trio, nodes, fresh):
    stranger = Stranger(trio)
    here, away = listening_device(nodes[1]), away_device(nodes[2], name="away")
    certificate = nodes[0].provider_certificate()
    with Provider(nodes[0], certificate) as provider:
        assert_accepted(provider.push(here.token, {"id": "legible"}))
        assert_accepted(provider.push(away.token, {"id": "legible", "aps": {"alert": "legible"}}))
    eventually(lambda: [message.json["id"] for message in here.messages] == ["legible"])
    records = stranger.records()
    streams = {name for name, _ in records}
    assert {"HERALD_META", "HERALD_APPS", "HERALD_TRUST"} < streams and any(name.startswith("HERALD_BOX") for name in streams)
    for (_, subject), (payload, _) in records.items():
        assert all(word not in payload for word in (b"legible", b"com.example", b"BEGIN", b"node1", here.id.encode())), subject

    # Each message between nodes.
    kinds = ("ring", "rung", "once", "drills", "journal", "search", "tallies", "state", "answer", "unknown")
    stranger.write([(f"hrld.{place}.{kind}", payload, None) for place in ("node.node1", "node.node2", "nodes") for kind in kinds for payload in (b"", b"x", b"x" * 500_000)])
    eventually(lambda: total(nodes[0]) >= 20, what="dropped messages")
    assert_named(nodes[0], "hrld.node")

    # Each record: moved, repeated without or with its condition, one byte, an end, and all header blocks.
    sealed = [value for value in records.values() if value[0]]
    for number, ((stream, subject), (payload, headers)) in enumerate(records.items()):
        condition = {name: value for name, value in headers.items() if name == "Nats-Expected-Last-Subject-Sequence"}
        messages = [(subject, sealed[number - 1][0], None), (subject, payload, None), (subject, payload, condition), (subject, b"", None)]
        stranger.write([*messages, (subject, b"x", {"Nats-TTL": "3600s"}), (subject, b"x", None)])
        publish(stranger.server, subject, b"x", BLOCKS[number % len(BLOCKS)])
        prefix = subject.split(".")[1]
        stranger.write([(f"hrld.{prefix}.{rest}", b"x", None) for rest in ("x", "0.x", "0.AAAAAAAAAAA", "0.AAAAAAAAAAA.c", "0.AAAAAAAAAAA.n.1.1", "x.y.z", "0.x.y.z.a.b.c")])
    # The record of the cluster, with what could keep its readers from reading it.
    for block in BLOCKS:
        publish(stranger.server, "hrld.meta.cluster", b"x", block)

    def arrives(device, id):
        with Provider(nodes[0], certificate) as provider:
            eventually(lambda: provider.push(device.token, {"id": id}).status == 200, 2 * PATIENCE, f"{id}, accepted")
        eventually(lambda: id in [message.json["id"] for message in device.messages], what=f"{id}, received")

    arrives(here, "after")
    for node in nodes:
        assert_named(node, "hrld.")
    # Whoever connects gets what is new: what waited was overwritten, and the next put took its place.
    away.start()
    arrives(away, "again")
    token = away.token
    # A start reads the trust, which the nodes that run have written again.
    trust = [place for place in records if ".fact." in place[1]]
    whole = lambda: all(len(now[place][0]) > 28 for now in [stranger.records()] for place in trust)
    eventually(whole, what="all of the trust")
    # At the next start of each.
    for node in nodes:
        node.stop()
        node.start()
    for device in (here, away):
        device.stop()
        device.start()
    arrives(here, "restarted")
    arrives(away, "restarted")
    assert away.token == token, "registrations and numbers are what they were"
    words = ("cluster", "nodes", *options(trio)[:2], *options(trio)[4:])
    key = ("--cluster-key", nodes[0].data / "trust" / "cluster.key")
    eventually(lambda: herald(*words, *key).stdout.count("live") == 3, what="three nodes")
    # Without the key, a command says what it lacks.
    lacking = herald(*words, check=False)
    assert lacking.returncode != 0 and "lacks the cluster key" in lacking.stderr
    eventually(whole, what="all of the trust")
    # A node that was never here gets everything from the records that the others have written again.
    new = fresh(*options(trio, "node4"), "--cluster-key", str(nodes[0].data / "trust" / "cluster.key")).start()
    with Provider(new, certificate) as provider:
        assert_accepted(provider.push(here.token, {"id": "new node"}))
    eventually(lambda: "new node" in [message.json["id"] for message in here.messages])
    for device in (here, away):
        device.stop()
