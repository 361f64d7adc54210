"""The trust that the nodes of a cluster share: a node needs an empty folder and the cluster key, and nothing is copied by hand."""

import json
import pathlib
import shutil

import pytest

from nats_servers import NATSTrio
from provider import Provider, away_device
from parties import assert_accepted
from service import eventually, herald
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


def listed(service, *command):
    return json.loads(herald(*command, "--data", service.data, "--json").stdout)


def test_a_machine_with_nothing_but_the_key_takes_over(trio, node, key, fresh, tmp_path):
    assert any("cluster.key" in line for line in node.lines), "the first node says where its key is"
    device, lost = away_device(node), away_device(node, name="lost")
    certificate = node.provider_certificate()
    code = listed(node, "device", "invite")["code"]
    with Provider(node, certificate) as provider:
        assert_accepted(provider.push(device.token, {"id": "waits"}))
    herald("device", "revoke", lost.id, "--data", node.data)
    old = device.token
    assert "token key 2 seals device tokens from now on" in herald("token", "rotate", "--data", node.data).stdout
    lists = [("device", "list"), ("provider", "list"), ("device", "invite", "--list"), ("token", "keys")]
    before = {command: listed(node, *command) for command in lists[:3]}
    authority = node.ca.read_bytes()
    node.stop()
    shutil.rmtree(node.data)
    service = fresh(*options(trio, "two"), "--cluster-key", str(key)).start()
    assert {command: listed(service, *command) for command in lists[:3]} == before
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
    assert second.returncode != 0 and "used up: it works once" in second.stdout + second.stderr
    assert len(listed(service, "device", "list")) == 3
    # The folder has the key now, and needs the setting no more.
    service.stop()
    fresh(*options(trio, "two"), data=service.data).start().stop()


def test_a_node_that_does_not_belong_here_is_told_why(trio, node, key, tmp_path):
    node.stop()
    data = tmp_path / "new"
    assert "this node lacks the key of the cluster" in refusal(data, *options(trio, "two"))
    other = tmp_path / "other.key"
    other.write_text("A" * 43 + "=\n")
    assert "is not the cluster's: copy trust/cluster.key" in refusal(data, *options(trio, "two"), "--cluster-key", str(other))
    other.write_text("no key\n")
    assert "is no cluster key" in refusal(data, *options(trio, "two"), "--cluster-key", str(other))
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
