"""The whole of a cluster as an operator sees it from any node: journal, nodes, health, metrics; and what is gone or cut."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import urllib.request

from cluster_network import Cut, Machine, PrivateNetwork
from nats_servers import NATSTrio
from parties import assert_accepted
from provider import Provider, listening_device
from service import PATIENCE, TOPIC, eventually, herald
from test_cluster_node import options
from test_cluster_nodes import nodes, trio


def cluster(trio, *command, check=True):
    """`herald cluster …` with the settings of these servers, and the key of their nodes."""
    name, value, *_, monitor, monitors = options(trio)
    key = ["--cluster-key", trio.key] if trio.key else []
    return herald("cluster", *command, name, value, monitor, monitors, *key, check=check)


def states(trio):
    """Each node's state, and the devices that are connected to it."""
    return {node["name"]: (node["state"], node.get("devices_connected")) for node in json.loads(cluster(trio, "nodes", "--json").stdout)}


def ask(node, path, body=None):
    """The answer of a node's console."""
    token = (node.data / "run" / "admin.token").read_text().strip()
    address = f"http://127.0.0.1:{node.listeners['console']}{path}"
    request = urllib.request.Request(
        address, body and json.dumps(body).encode(), {"authorization": f"Bearer {token}", "content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers, answer.read().decode()


def metrics(node):
    found = re.findall(r'^herald_cluster_(?:nodes\{state="(\w+)"\}|(claims)) (\S+)$', ask(node, "/metrics")[1], re.M)
    return {state or name: int(float(value)) for state, name, value in found}


def evict(trio, name):
    result = cluster(trio, "evict", name, check=False)
    return result.returncode, result.stdout + result.stderr


def test_any_node_shows_the_whole_also_when_one_is_gone(trio, nodes):
    a, b, c = nodes
    device = listening_device(b)
    with Provider(a, a.provider_certificate()) as provider:
        answer = provider.push(device.token, {"id": "somewhere"})
        assert_accepted(answer)
    eventually(lambda: device.messages)
    find = lambda *more: herald("journal", answer.id, "--data", c.data, *more, check=False)

    def places():
        return {(line["node"], line["state"]) for line in json.loads(find("--json").stdout)}

    # Its whole life, wherever a line was written.
    eventually(lambda: {("node1", "received"), ("node2", "delivered from storage")} <= places(), what="a whole life")
    # A node that stands still for two seconds does not answer.
    eventually(lambda: "did not answer" not in find().stderr, what="the answers of all nodes")
    search = lambda: herald("journal", f"id:{answer.id} topic:{TOPIC}", "--json", "--data", c.data, check=False)
    found = lambda: {(line["node"], line["state"]) for line in json.loads(search().stdout)}
    eventually(lambda: found() == places(), what="the same by a search")
    counts = lambda: json.loads(ask(c, f"/v1/tallies?app={TOPIC}&by=state")[1])
    sums = {state: 1 for state in ("received", "stored (before it is sent)", "delivered from storage")}
    eventually(lambda: counts()["sums"] == sums, what="the counts of all nodes")
    # The node that is asked has none of the lines.
    assert herald("journal", answer.id, "--wait", "30s", "--until", "delivered", "--data", c.data).returncode == 0
    times = eventually(lambda: [line["time"] for line in c.journal("--device", device.id)])
    assert times == sorted(times)
    connected = {"node1": ("live", 0), "node2": ("live", 1), "node3": ("live", 0)}
    eventually(lambda: states(trio) == connected, what="three nodes and a device")
    eventually(lambda: cluster(trio, "status", check=False).returncode == 0, what="a whole cluster")
    devices = lambda: json.loads(ask(c, "/v1/devices")[1])["items"]
    eventually(lambda: devices()[0]["connected"], what="a device that is connected to another node")

    # Two nodes whose searches ask each other, without a pause.
    def search_at_length(node):
        answers = [ask(node, "/v1/journal/search", {"q": f"topic:{TOPIC}"})[1] for _ in range(25)]
        return sum(json.loads(answer)["missing_nodes"] == [] for answer in answers)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        whole = list(pool.map(search_at_length, [a, c] * 4))
    assert sum(whole) > 100, whole

    code, words = evict(trio, "node2")
    assert code == 1 and "node2 is live" in words and "stop it first" in words
    code, words = evict(trio, "node4")
    assert code == 1 and "node1 (live), node2 (live), node3 (live)" in words
    os.kill(b.pid, signal.SIGSTOP)

    # The others answer sooner or later.
    def is_incomplete(found, words):
        return "node1" in found.stdout and words in found.stderr

    eventually(lambda: is_incomplete(find(), "node2 did not answer: its lines are missing"), what="the lines of two nodes")
    assert find().returncode == 0
    eventually(lambda: is_incomplete(search(), "node2 did not answer"), what="the lines of two nodes by a search")
    eventually(lambda: ask(c, f"/v1/journal?id={answer.id}")[0]["herald-missing-nodes"] == "node2", what="the missing node")
    missing = eventually(lambda: (found := counts())["missing_nodes"] == ["node2"] and found, what="the missing node in counts")
    assert missing["sums"]["received"] == 1
    b.kill()
    eventually(lambda: metrics(c) == {"live": 2, "silent": 1, "left": 0, "claims": 1}, what="a silent node in the metrics")
    said = lambda: herald("status", "--data", c.data, check=False).stdout
    eventually(lambda: "node node2 has given no sign of life" in said(), what="the silent node in the status")
    eventually(lambda: states(trio)["node2"] == ("silent", None), what="a silent node")
    status = cluster(trio, "status", check=False)
    assert status.returncode == 1 and "herald cluster evict node2" in status.stdout
    assert evict(trio, "node2") == (0, "node node2 is removed; devices released: 1\n")
    assert set(states(trio)) == {"node1", "node3"}
    eventually(lambda: metrics(c) == {"live": 2, "silent": 0, "left": 0, "claims": 0}, what="an evicted node in the metrics")
    eventually(lambda: "did not answer" not in find().stderr, what="the answers of the two that are left")
    eventually(lambda: any("node node2 was removed" in line for line in c.lines), what="the removal in the log")
    assert not any("node2 is no longer silent" in line for line in c.lines)

    # It comes back as a new node, with its journal.
    b.start()
    device.stop()
    eventually(lambda: ("node2", "delivered from storage") in places(), what="the lines of a node that is back")

    # A cluster that lacks a node or a server is not whole.
    eventually(lambda: cluster(trio, "status", check=False).returncode == 0, what="a whole cluster again")
    trio.servers[2].kill()
    status = cluster(trio, "status", check=False)
    assert status.returncode == 1 and "does not answer: start that nats-server" in status.stdout
    assert not re.search("n3 is behind .*: wait", status.stdout) and "majority" not in herald("status", "--data", c.data, check=False).stdout
    trio.servers[2].start()
    eventually(lambda: cluster(trio, "status", check=False).returncode == 0, what="a whole cluster again")
    b.stop()
    status = cluster(trio, "status", check=False)
    assert status.returncode == 1 and "node node2 was stopped: start it" in status.stdout


def test_two_servers_that_do_not_reach_each_other_are_named(tmp_path):
    """Both reach the third, so all streams are sound, and messages between nodes get lost all the same."""
    with PrivateNetwork(), contextlib.ExitStack() as stack:
        machines = [Machine(number) for number in (1, 2, 3)]
        trio = NATSTrio(tmp_path, addresses=[machine.address for machine in machines])
        for server, machine in zip(trio.servers, machines):
            stack.callback(machine.close)
            server.prefix = machine.inside
        stack.callback(trio.close)
        first, second, _ = machines
        cuts = Cut([first], [second]), Cut([second], [first])
        trio.launch()

        def cut():
            status = cluster(trio, "status", check=False)
            return "nats-server n1 and n2 do not reach each other" in status.stdout

        eventually(cut, what="the missing route")
        for each in cuts:
            each.heal()
        eventually(lambda: not cut(), what="all routes")
