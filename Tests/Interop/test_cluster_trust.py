"""The trust that the nodes of a cluster share: a node needs an empty folder and the cluster key, and nothing is copied by hand."""

import json
import pathlib
import shutil
import subprocess
import urllib.request

import pytest
from cryptography.hazmat.primitives import serialization

from certificates import Authority
from est_client import device_id, enroll, key_and_request
from nats_servers import NATSTrio
from parties import assert_accepted
from provider import Provider, away_device, listening_device
from service import HERALD, PATIENCE, TOPIC, eventually, herald
from test_cluster_node import options, refusal


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path).start()
    yield trio
    trio.close()


@pytest.fixture
def node(trio, fresh):
    return fresh(*options(trio)).start()


@pytest.fixture
def key(node, tmp_path):
    """A copy of the cluster key, as an operator makes it."""
    source = node.data / "trust" / "cluster.key"
    assert source.stat().st_mode & 0o777 == 0o600
    return pathlib.Path(shutil.copy(source, tmp_path / "cluster.key"))


def revoke(service, device):
    """Revokes a device by the admin API of a node."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    request = urllib.request.Request(
        f"http://{service.host}:{service.listeners['console']}/v1/devices/{device}/revoke", method="POST",
        headers={"authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200


def listed(service, *command):
    return json.loads(herald(*command, "--data", service.data, "--json").stdout)


def common(service, *command):
    """The list without the last connections, which have their address only at the node where they were."""
    return [
        {name: value for name, value in one.items() if name not in ("last_seen", "last_address")}
        for one in listed(service, *command)
    ]


def test_a_machine_with_nothing_but_the_key_takes_over(trio, node, key, fresh, tmp_path):
    eventually(lambda: any("cluster.key" in line for line in node.lines), what="the line about the key of the first node")
    device, lost = away_device(node), away_device(node, name="lost")
    certificate = node.provider_certificate()
    code = listed(node, "device", "invite")["code"]
    with Provider(node, certificate) as provider:
        assert_accepted(provider.push(device.token, {"id": "waits"}))
    herald("device", "revoke", lost.id, "--data", node.data)
    old = device.token
    assert "token key 2 seals device tokens from now on" in herald("token", "rotate", "--data", node.data).stdout
    lists = [("device", "list"), ("provider", "list"), ("device", "invitations"), ("token", "keys")]
    eventually(lambda: all("last_seen" in one for one in listed(node, "device", "list")))
    before = {command: common(node, *command) for command in lists[:3]}
    authority = node.ca.read_bytes()
    node.stop()
    shutil.rmtree(node.data)
    service = fresh(*options(trio, "two"), "--cluster-key", str(key)).start()
    assert {command: common(service, *command) for command in lists[:3]} == before
    assert all("last_seen" in one for one in listed(service, "device", "list")), "seen by the other node"
    assert [key["id"] for key in listed(service, *lists[3])] == [1, 2]
    assert service.ca.read_bytes() == authority
    for one in (device, lost):
        one.service = service
    device.start()
    eventually(lambda: [message.json["id"] for message in device.messages] == ["waits"])
    assert device.token != old, "sealed under the new key"
    with Provider(service, certificate) as provider:
        for token in (old, device.token):
            assert_accepted(provider.push(token, {"id": token[:8]}))
    with pytest.raises(AssertionError):
        lost.start(timeout=3)
    device.stop()
    # An invitation of the former node makes a device at this one, once.
    listener = f"localhost:{service.listeners['activation']}"
    first, second = (
        herald(
            "agent", "activate", "--service", listener, "--code", code, "--folder", tmp_path / name, check=False
        )
        for name in ("one", "two")
    )
    assert first.returncode == 0, first.stderr
    assert second.returncode != 0 and "is used up: ask" in second.stdout + second.stderr
    assert len(listed(service, "device", "list")) == 3
    # The folder has the key now, and needs the setting no more.
    service.stop()
    fresh(*options(trio, "two"), data=service.data).start().stop()


def test_a_lost_ca_pem_of_one_node_comes_back_from_the_cluster(trio, node, key, fresh):
    other = fresh(*options(trio, "two"), "--cluster-key", str(key)).start()
    both = node.ca.read_bytes() + Authority.foreign("next").certificate.public_bytes(serialization.Encoding.PEM)
    node.ca.write_bytes(both)
    eventually(lambda: other.ca.read_bytes() == both)
    other.stop()
    other.ca.unlink()
    other.start()
    eventually(lambda: other.ca.read_bytes() == both)
    # Changes of this node reach the other one, so nothing of the start is on its way any longer.
    device = listed(other, "device", "invite")["id"]
    eventually(lambda: device in [one["id"] for one in listed(node, "device", "invitations")])
    assert node.ca.read_bytes() == both
    announced = json.loads(herald("device", "announcement", "--data", node.data, "--json").stdout)
    assert len(announced["authorities"]) == 2


def test_a_node_that_does_not_belong_here_is_told_why(trio, node, key, tmp_path):
    node.stop()
    data = tmp_path / "new"
    assert "this node lacks the key of the cluster" in refusal(data, *options(trio, "two"))
    other = tmp_path / "other.key"
    other.write_text("A" * 43 + "=\n")
    other.chmod(0o600)
    assert "is not the cluster's: copy trust/cluster.key" in refusal(data, *options(trio, "two"), "--cluster-key", str(other))
    other.write_text("no key\n")
    assert "is not a cluster key" in refusal(data, *options(trio, "two"), "--cluster-key", str(other))
    assert "cannot read" in refusal(data, *options(trio, "two"), "--cluster-key", str(tmp_path / "missing"))
    herald("init", "--data", tmp_path / "stranger")
    assert "authorities are not those of the cluster" in refusal(
        tmp_path / "stranger", *options(trio, "two"), "--cluster-key", str(key)
    )
    # A backup has the key, and a folder without it says so.
    said = herald("backup", "--data", node.data, tmp_path / "copy").stdout
    assert (tmp_path / "copy" / "trust" / "cluster.key").read_bytes() == key.read_bytes(), said
    (node.data / "trust" / "cluster.key").unlink()
    assert "this node lacks the key of the cluster" in refusal(node.data, *options(trio))
    settings = tmp_path / "herald.yaml"
    settings.write_text(f"data: {node.data}\ncluster: [{trio.servers[0].url}]\ncluster-monitor: [{trio.servers[0].monitor}]\n")
    assert "cluster.key is missing" in herald("doctor", "--config", settings, check=False).stdout


class TestSeveralNodes:
    """A change at one node is in force at the others."""

    @pytest.fixture
    def other(self, trio, node, key, fresh):
        return fresh(*options(trio, "two"), "--cluster-key", str(key)).start()

    def test_a_token_key_made_at_one_node_is_used_at_the_other(self, node, other):
        device = listening_device(other)
        old = device.token
        certificate = node.provider_certificate()
        assert "token key 2 seals device tokens from now on" in herald("token", "rotate", "--data", node.data).stdout
        eventually(lambda: device.token != old, what="a token under the new key")
        with Provider(node, certificate) as provider:
            for token in (old, device.token):
                assert_accepted(provider.push(token, {"id": token[:8]}))
        herald("token", "retire", "1", "--data", other.data)

        def is_refused():
            with Provider(node, certificate) as provider:
                return provider.push(old, {"id": "old"}).reason == "BadDeviceToken"

        eventually(is_refused, what="the end of a retired key's tokens")
        device.stop()

    def test_a_credential_of_one_node_is_good_at_the_other(self, node, other):
        device = listening_device(node)
        key = other.provider_key(TOPIC)
        eventually(lambda: [one["id"] for one in listed(node, "provider", "list")] == [key[1]])
        with Provider(node, key=key) as provider:
            assert_accepted(provider.push(device.token, {"id": "one"}))
        device.stop()

    def test_one_code_at_two_nodes_makes_one_device(self, node, other, tmp_path):
        for turn in range(3):
            code = listed(node, "device", "invite")["code"]
            eventually(lambda: len(listed(other, "device", "invitations")) == turn + 1)
            commands = [
                [
                    str(HERALD), "agent", "activate", "--service", f"localhost:{service.listeners['activation']}",
                    "--code", code, "--folder", str(tmp_path / f"{turn}{service.data.name}"),
                ]
                for service in (node, other)
            ]
            processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for command in commands]
            codes = sorted(process.wait(timeout=PATIENCE) for process in processes)
            assert codes[0] == 0 and codes[1] != 0, "one wins, and the other says so"
            for process in processes:
                process.communicate()
            for service in (node, other):
                eventually(lambda: len(listed(service, "device", "list")) == turn + 1)
        # A device whose answer was lost asks the other node, by curl.
        _, request = key_and_request(tmp_path)
        code = listed(node, "device", "invite")["code"]
        first = enroll(node, code, request)
        eventually(lambda: len(listed(other, "device", "list")) == 4)
        assert enroll(other, code, request).certificates == first.certificates
        assert len(listed(other, "device", "list")) == 4
        # It never came: revoked at one node, its use is free at the other.
        herald("device", "revoke", device_id(first.certificates[0]), "--data", node.data)
        _, next_request = key_and_request(tmp_path, stem="next")
        eventually(lambda: enroll(other, code, next_request).status == 200)
        assert enroll(node, code, key_and_request(tmp_path, stem="third")[1]).status == 401
