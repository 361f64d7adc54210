"""A single machine becomes a cluster, and a lost cluster comes back from its backup: every device token stays valid."""

import contextlib
import json
import shutil
import subprocess

import pytest

from channels import create, filter_of, publish, soon
from mqtt_device import Identity
from nats_servers import NATSTrio
from parties import assert_accepted, new_id, remove_app
from provider import Disconnected, Provider, away_device
from service import PATIENCE, TOPIC, eventually, herald
from test_backup import Load
from test_cluster_node import options, refusal

MAIL = "com.example.mail"


@pytest.fixture
def trio(tmp_path):
    trio = NATSTrio(tmp_path).start()
    yield trio
    trio.close()


def refused(*command, **more):
    """The one line with which a command refuses its work."""
    result = herald(*command, check=False, **more)
    assert result.returncode == 1 and not result.stdout, result
    return result.stderr.splitlines()[-1]


def switch_off(device, topic=TOPIC):
    """Switches an app off, as its user does."""
    subprocess.run(
        [
            "mosquitto_pub", "-h", "127.0.0.1", "-p", str(device.service.listeners["device"]), "--cafile", device.service.ca,
            "--cert", device.path, "--key", device.path, "-i", device.id, "-V", "mqttv5", "-q", "1",
            "-t", f"apps/{topic}/settings", "-m", '{"enabled":false}',
        ],
        check=True, timeout=PATIENCE,
    )


class PatientLoad(Load):
    """A load that goes on after answers that a busy cluster may give."""

    def _push(self):
        while not self._stopping.is_set():
            with contextlib.suppress(Disconnected, OSError), Provider(self.service, self.certificate) as provider:
                while not self._stopping.is_set():
                    for device in self.devices:
                        id = new_id()
                        self.sent[device.id].append(id)
                        answer = provider.push(device.token, {"aps": {"alert": "x" * 2000}}, id=id)
                        assert answer.status in (200, 503) or answer.reset, answer
                        if answer.status == 200:
                            self.accepted[device.id].append(id)


def test_a_single_machine_becomes_a_cluster(trio, fresh, tmp_path):
    service = fresh().start()
    waiting, other, off, removed, revoked = (
        away_device(service, *topics, name=name)
        for name, topics in {
            "waiting": (TOPIC, MAIL), "other": (), "off": (), "removed": (), "revoked": (),
        }.items()
    )
    certificate, key = service.provider_certificate(TOPIC, MAIL), service.provider_key(TOPIC)
    switch_off(off)
    remove_app(removed)
    herald("device", "revoke", revoked.id, "--data", service.data)
    with Provider(service, certificate) as provider:
        for id in ("older", "newest"):
            assert_accepted(provider.push(waiting.token, {"id": id}))
        assert_accepted(provider.push(waiting.tokens[MAIL], {"id": "mail"}, topic=MAIL))
        channel = create(provider)
        publish(provider, channel, {"aps": {"event": "update", "timestamp": 7, "content-state": {}}}, expiration=soon())
    assert "stop it first, and repeat the import" in refused("cluster", "import", service.data, *options(trio))
    service.stop()

    # Without a key of the folder, nothing is touched.
    def hidden(name):
        return service.data / "trust" / name, tmp_path / name

    shutil.move(*hidden("token.keys"))
    assert "token.keys" in refused("cluster", "import", service.data, *options(trio))
    shutil.move(*reversed(hidden("token.keys")))
    # An import that fails half way is repeated, and no node serves what it has left.
    shutil.move(*hidden("ledger.db"))
    assert "ledger.db" in refused("cluster", "import", service.data, *options(trio))
    key_file = str(service.data / "trust" / "cluster.key")
    assert "has not ended" in refusal(tmp_path / "early", *options(trio, "early"), "--cluster-key", key_file)
    assert "lacks the key of the cluster" in refusal(tmp_path / "keyless", *options(trio, "early"))
    stranger = fresh().start()
    stranger.stop()
    # Without the key of the other folder, this one cannot see how far the cluster is.
    assert "the cluster is not empty" in refused("cluster", "import", stranger.data, *options(trio))
    shutil.move(*reversed(hidden("ledger.db")))
    assert "devices of a single machine" in refusal(service.data, *options(trio))
    taken = json.loads(herald("cluster", "import", service.data, *options(trio), "--json").stdout)
    assert taken == {"devices": 5, "apps": 2, "registrations": 6, "channels": 1, "notifications": 2}, taken
    assert "the cluster is not empty" in refused("cluster", "import", stranger.data, *options(trio))
    assert "nothing to import" in refused("cluster", "import", service.data, *options(trio))

    first = fresh(*options(trio), data=service.data).start()
    second = fresh(*options(trio, "two"), "--cluster-key", str(service.data / "trust" / "cluster.key")).start()
    for device in (waiting, other, off, removed, revoked):
        device.service = second
    old = dict(waiting.tokens)
    with waiting.start(), other.start():
        eventually(lambda: len(waiting.messages) == 2)
        assert sorted(message.json["id"] for message in waiting.messages) == ["mail", "newest"]
        with Provider(first, certificate) as one, Provider(second, key=key) as two:
            assert_accepted(one.push(old[TOPIC], {"id": "one"}))
            assert_accepted(two.push(other.token, {"id": "two"}))
            assert_accepted(one.push(old[MAIL], {"id": "three"}, topic=MAIL))
            assert one.push(removed.token).reason == "Unregistered"
            answer = two.push(off.token)
            assert_accepted(answer)
            eventually(lambda: "disabled" in str(second.journal(answer.id)), what="the line of a switched-off app")
        eventually(lambda: len(waiting.messages) == 4 and len(other.messages) == 1)
    with pytest.raises(AssertionError):
        revoked.start(timeout=3)
    assert first.journal(waiting.messages[0].id), "the journal stays in the folder"
    # A device that subscribes gets the stored broadcast of the channel.
    subscriber = Identity(second, "subscriber")
    link = subscriber.stay()
    link.subscribe(filter_of(channel))
    assert json.loads(link.next(filter_of(channel)).payload)["aps"]["timestamp"] == 7
    subscriber.close()


def test_a_lost_cluster_comes_back_from_a_backup(trio, fresh, tmp_path):
    settings = tmp_path / "herald.yaml"
    settings.write_text(json.dumps({
        "cluster": [server.url for server in trio.servers], "cluster-monitor": [server.monitor for server in trio.servers],
        "node": "one",
    }))
    node = fresh(*options(trio)).start()
    devices = [away_device(node, name=f"device {number}") for number in range(3)]
    revoked = away_device(node, name="revoked")
    herald("device", "revoke", revoked.id, "--data", node.data)
    load = PatientLoad(node, devices)
    try:
        eventually(lambda: all(len(accepted) > 5 for accepted in load.accepted.values()), what="the load")
        newest = load.newest()
        made = herald("backup", "--config", settings, "--data", node.data, tmp_path / "backup", "--json")
    finally:
        load.stop()
    report = json.loads(made.stdout)
    assert (report["cluster"], report["waiting"]) == ("whole", len(devices)) and report["devices"] >= 4
    assert "the cluster is not empty" in refused(
        "restore", tmp_path / "backup", "--config", settings, "--data", tmp_path / "too-early"
    )
    assert not (tmp_path / "too-early").exists()
    node.kill()
    for server in trio.servers:
        server.kill()
        shutil.rmtree(server.folder)
    trio.start()

    # Without the settings, the folder alone is restored: it must not make a new cluster without its devices.
    herald("restore", tmp_path / "backup", "--data", tmp_path / "alone")
    assert "the cluster is new" in refusal(tmp_path / "alone", *options(trio))
    said = herald("restore", tmp_path / "backup", "--config", settings, "--data", tmp_path / "data").stdout
    assert "taken into the cluster" in said, said
    back = fresh(*options(trio), data=tmp_path / "data").start()
    with Provider(back, load.certificate) as provider:
        for device in devices:
            sent = load.sent[device.id]
            device.service = back
            old = device.token
            with device.start():
                assert sent.index(device.next().id) >= sent.index(newest[device.id])
                assert_accepted(provider.push(old, {"id": "after"}))
                assert device.next().json["id"] == "after"
    revoked.service = back
    with pytest.raises(AssertionError):
        revoked.start(timeout=3)
    # A device that comes now gets a number that none had before.
    new = away_device(back, name="new")
    assert new.token not in {device.token for device in devices}
