"""One Herald node on three NATS servers: any of the four may fail, and nothing that was accepted is lost."""

import json
import re
import shutil
import subprocess
import urllib.request

import pytest

from nats_servers import CLIENT, NATSTrio
from parties import assert_accepted
from provider import Provider, away_device, listening_device
from service import HERALD, PATIENCE, TOPIC, eventually, herald
from test_crash_ledger import balance


def options(trio, node="one"):
    """The settings of a node on these servers."""
    return [
        "--cluster", ",".join(server.url for server in trio.servers), "--node", node,
        "--cluster-monitor", ",".join(server.monitor for server in trio.servers),
    ]


def refusal(data, *options):
    """The reason why a node does not start."""
    command = [str(HERALD), "serve", "--data", str(data), *options]
    for port in ("api", "binary", "feedback", "device", "activation", "console"):
        command += [f"--{port}-port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert result.returncode in (1, 78), result.stderr
    return result.stderr.splitlines()[-1]


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path).start()
    yield trio
    trio.close()


@pytest.fixture
def node(trio, fresh):
    return fresh(*options(trio)).start()


def test_notifications_reach_devices_that_are_here_and_devices_that_come(node):
    here, away = listening_device(node), away_device(node)
    with Provider(node, node.provider_certificate()) as provider:
        for number in range(3):
            assert_accepted(provider.push(here.token, {"id": f"here{number}"}))
            assert_accepted(provider.push(away.token, {"id": f"away{number}"}))
        eventually(lambda: [message.json["id"] for message in here.messages] == ["here0", "here1", "here2"])
        health = json.loads(herald("status", "--data", node.data, "--json").stdout)
        assert health["service"]["notifications_waiting"] <= 2
        away.start()
        eventually(lambda: away.messages)
        # The newest of an app alone is kept.
        assert [message.json["id"] for message in away.messages] == ["away2"]
        assert_accepted(provider.push(away.token, {"id": "later"}))
        eventually(lambda: [message.json["id"] for message in away.messages] == ["away2", "later"])
    for device in (here, away):
        device.stop()


def test_the_metrics_show_the_cluster(trio, node):
    def metrics():
        address = f"http://127.0.0.1:{node.listeners['console']}/metrics"
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return dict(re.findall(r"^herald_cluster_(connected|faults|streams_without_leader|trust_shared) (\S+)$", answer.read().decode(), re.M))

    sound = {"connected": "1", "faults": "0", "streams_without_leader": "0", "trust_shared": "1"}
    eventually(lambda: metrics() == sound, what="a sound cluster")
    trio.servers[2].kill()
    eventually(lambda: int(metrics()["faults"]) > 0, what="the faults of a cluster without a server")
    for server in trio.servers[:2]:
        server.kill()
    eventually(lambda: (metrics()["connected"], metrics()["trust_shared"]) == ("0", "0"), what="a cluster that is gone")
    health = herald("status", "--data", node.data, check=False)
    assert health.returncode == 1 and "no NATS server can be used" in health.stdout + health.stderr


def test_each_server_may_fail(trio, node):
    device = listening_device(node)
    with Provider(node, node.provider_certificate()) as provider:
        for number, server in enumerate(trio.servers):
            server.kill()

            def is_accepted(id=f"without {server.name}"):
                # While the others elect a leader, a request may be refused.
                answer = provider.push(device.token, {"id": id})
                return answer.status == 200

            eventually(is_accepted, 2 * PATIENCE, f"an accepted notification without {server.name}")
            eventually(lambda: f"without {server.name}" in {message.json["id"] for message in device.messages})
            trio.start()
    device.stop()


def test_a_spare_with_the_same_trust_takes_over(trio, node, fresh, tmp_path):
    device = away_device(node)
    certificate = node.provider_certificate()
    with Provider(node, certificate) as provider:
        assert_accepted(provider.push(device.token, {"id": "waits"}))
    said = herald("backup", "--data", node.data, tmp_path / "copy").stdout
    assert "devices and notifications stay in the cluster" in said and "waiting" not in said
    said = herald("restore", tmp_path / "copy", "--data", tmp_path / "spare").stdout
    assert "in the cluster, and lose nothing" in said and "notifications are lost" not in said
    # Two nodes need two names.
    assert "another node with the name one serves this cluster" in refusal(tmp_path / "spare", *options(trio, "one"))
    node.kill()
    # It would refuse every token: with other authorities, or without its cluster.
    assert "lacks the key of the cluster" in refusal(tmp_path / "stranger", *options(trio, "two"))
    for data in (node.data, tmp_path / "spare"):
        assert "the folder of a cluster's node" in refusal(data)
    shutil.rmtree(node.data)
    service = fresh(*options(trio, "two"), data=tmp_path / "spare").start()
    assert not any("not closed cleanly" in line for line in service.lines), "starts that are refused close what they opened"
    device.service = service
    device.start()
    eventually(lambda: [message.json["id"] for message in device.messages] == ["waits"])
    with Provider(service, certificate) as provider:
        assert_accepted(provider.push(device.token, {"id": "after"}))
    eventually(lambda: "after" in {message.json["id"] for message in device.messages})
    device.stop()


@pytest.mark.slow
def test_no_accepted_notification_is_forgotten_in_a_cluster(trio, node, rounds):
    def kill_servers(cycle):
        chance = rounds.random(cycle, "servers")
        for server in chance.sample(trio.servers, chance.choice((0, 1, 1, 2, 3))):
            server.kill()

    balance(node, rounds, {200, 503, None}, kill_servers, lambda cycle: trio.start())


class TestStart:
    """A node does not start on servers that could lose what they acknowledge."""

    def test_servers_that_sync_late_are_refused(self, tmp_path):
        trio = NATSTrio(tmp_path, sync="2m").start()
        try:
            reason = refusal(tmp_path / "data", *options(trio))
            assert "does not sync every write" in reason and "sync_interval: always" in reason
            settings = tmp_path / "herald.yaml"
            servers, monitors = ([getattr(server, name) for server in trio.servers] for name in ("url", "monitor"))
            settings.write_text(f"data: {tmp_path / 'data'}\ncluster: {json.dumps(servers)}\ncluster-monitor: {json.dumps(monitors)}\n")
            doctor = herald("doctor", "--config", settings, "--json", check=False)
            findings = [check for check in json.loads(doctor.stdout)["checks"] if check["area"] == "cluster"]
            assert doctor.returncode == 1 and len(findings) == 3
            assert all(check["level"] == "fail" and "sync_interval: always" in check["remedy"] for check in findings)
        finally:
            trio.close()

    def test_servers_that_cannot_be_checked_are_refused(self, trio, tmp_path):
        reason = refusal(tmp_path / "data", *options(trio)[:-1], "http://127.0.0.1:1")
        assert "no address of cluster-monitor answers" in reason

    def test_a_missing_check_must_be_wanted(self, tmp_path):
        result = herald("serve", "--data", tmp_path / "data", "--cluster", f"nats://127.0.0.1:{CLIENT}", check=False)
        assert result.returncode == 78 and "--cluster-monitor" in result.stderr and "--cluster-unverified" in result.stderr

    def test_another_number_of_replicas_is_told(self, trio, node):
        node.stop()
        reason = refusal(node.data, *options(trio), "--cluster-replicas", "1")
        assert "made with 3 replicas" in reason and "cluster-replicas is 1: set cluster-replicas to 3" in reason

    def test_a_loss_is_noticed_and_must_be_accepted(self, trio, node, fresh):
        device = away_device(node)
        with Provider(node, node.provider_certificate()) as provider:
            assert_accepted(provider.push(device.token, {"id": "lost"}))
        node.stop()
        trio.close()
        for server in trio.servers:
            shutil.rmtree(server.folder)
        trio.start()
        assert "have lost what they had acknowledged" in refusal(node.data, *options(trio))
        node.start("--cluster-accept-loss")
        # A token of the lost registration opens nothing in its place.
        with Provider(node, node.provider_certificate()) as provider:
            assert provider.push(device.token, {"id": "new"}).status in (400, 410)
