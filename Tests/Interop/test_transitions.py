"""Changes of a service's authorities and addresses: begun twice, withdrawn, interrupted, restored."""

import base64
import json
import os
import shutil
import subprocess

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from agents import Agent
from certificates import Authority
from est_client import curl, invite
from mqtt_device import Identity
from service import HERALD, PATIENCE, TOPIC, eventually, free_port, herald


def part(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verified(text):
    """The header and content of a JSON Web Signature of ES256, whose signature is checked without Herald's code."""
    header, content, signature = text.split(".")
    jwk = json.loads(part(header))["jwk"]
    number = lambda name: int.from_bytes(part(jwk[name]), "big")
    key = ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1()).public_key()
    raw = part(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key.verify(der, f"{header}.{content}".encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(part(content))


class Kiosk(Agent):
    """An agent on the folder of its activation, which finds the service's ports again after each start of it."""

    def start(self):
        return self._start(
            [HERALD, "agent", "run", "--folder", self.folder, "--app", TOPIC, "--allow", "alert", "--json"]
        )


@pytest.fixture
def service(fresh):
    """A service on ports that stay."""
    service = fresh()
    service.options += ["--device-port", str(free_port()), "--activation-port", str(free_port())]
    return service.start()


@pytest.fixture
def kiosk(service, tmp_path):
    kiosk = Kiosk(service, tmp_path / "kiosk", None)
    herald(
        "agent", "activate", "--service", f"localhost:{service.listeners['activation']}", "--code", invite(service)["code"],
        "--folder", kiosk.folder,
    )
    yield kiosk
    kiosk.close()


def told(service, *options):
    return json.loads(herald("device", "announcement", "--data", service.data, "--json", *options).stdout)


def authority():
    return Authority.foreign("next").certificate.public_bytes(serialization.Encoding.PEM)


def known(kiosk):
    return json.loads((kiosk.folder / "service.json").read_text())["announcement"]


def test_one_that_is_begun_twice_is_begun_once_and_can_be_withdrawn(service, kiosk):
    kiosk.start().next("connected")
    first, former = told(service), service.ca.read_bytes()
    next_one = authority()
    service.ca.write_bytes(former + next_one)
    assert len(kiosk.next("announced")["addresses"]) == 1
    begun = eventually(lambda: (now := told(service))["devices"]["ready"] and now["version"] > first["version"] and now)
    service.ca.write_bytes(former + next_one + next_one)
    herald("provider", "list", "--data", service.data)
    service.stop()
    service.start()
    assert told(service)["version"] == begun["version"] and len(told(service)["authorities"]) == 2
    service.ca.write_bytes(former)
    kiosk.next("announced", authorities=1)
    eventually(lambda: len(told(service)["authorities"]) == 1)
    assert (kiosk.folder / "ca.pem").read_text().count("BEGIN") == 1


def test_a_kill_in_between_leaves_the_next_start_to_tell(service, kiosk):
    service.kill()
    service.ca.write_bytes(service.ca.read_bytes() + authority())
    (service.data / "trust" / "announcement.jws").unlink()
    service.start()
    kiosk.start().next("announced", authorities=2)
    eventually(lambda: told(service)["devices"]["ready"] == 1)


def test_devices_follow_a_service_that_was_restored_from_an_older_backup(service, kiosk, tmp_path):
    herald("backup", tmp_path / "backup", "--data", service.data)
    # The devices are told of an address and an authority that the backup does not know.
    service.ca.write_bytes(service.ca.read_bytes() + authority())
    kiosk.start().next("announced", authorities=2)
    newer = known(kiosk)
    service.stop()
    kiosk.next("disconnected")
    shutil.rmtree(service.data)
    herald("restore", tmp_path / "backup", "--data", service.data)
    service.start()
    kiosk.next("announced", authorities=1)
    assert known(kiosk) > newer
    eventually(lambda: told(service)["devices"]["ready"] == 1)


def test_a_copy_that_was_made_in_another_way_is_told_anew_by_command(service, kiosk, tmp_path):
    service.stop()
    shutil.copytree(service.data, tmp_path / "copy")
    service.start()
    service.ca.write_bytes(service.ca.read_bytes() + authority())
    kiosk.start().next("announced", authorities=2)
    service.stop()
    shutil.rmtree(service.data)
    (tmp_path / "copy").rename(service.data)
    service.start()
    # The copy knows an older announcement, which devices do not take.
    kiosk.next("connected")
    assert told(service, "--renew")["devices"]["behind"] == 0
    kiosk.next("announced", authorities=1)


def test_without_its_key_the_service_serves_and_says_what_devices_do_not_hear(service, kiosk, tmp_path):
    key = service.data / "trust" / "announcement.key"
    service.stop()
    key.rename(tmp_path / "key")
    service.ca.write_bytes(service.ca.read_bytes() + authority())
    service.start()
    kiosk.start().next("connected")
    status = json.loads(herald("status", "--data", service.data, "--json").stdout)
    assert any("announcement.key" in warning for warning in status["warnings"]), status
    checked = herald("doctor", "--data", service.data, check=False)
    assert checked.returncode == 1 and "announcement.key" in checked.stdout
    (tmp_path / "key").rename(key)
    service.stop()
    service.start()
    kiosk.next("announced", authorities=2)
    assert "announcement" not in herald("doctor", "--data", service.data, check=False).stdout


@pytest.mark.parametrize("version", ["mqttv5", "mqttv311"])
def test_mosquitto_hears_what_is_announced_and_says_so(service, version):
    device = Identity(service)
    common = [
        "-h", "localhost", "-p", str(service.listeners["device"]), "--cafile", service.ca, "--cert", device.path, "--key", device.path,
        "-i", device.id, "-q", "1", "-V", version, "-t", "device/service",
    ]
    text = subprocess.run(
        ["mosquitto_sub", *map(str, common), "-C", "1", "-W", str(PATIENCE)], capture_output=True, text=True, check=True
    ).stdout.strip()
    content = verified(text)
    assert content["version"] == told(service)["version"] and len(content["authorities"]) == 1
    assert json.loads(curl(service, "herald").body)["announcement"] == text
    changed = text.split(".")
    changed[1] = base64.urlsafe_b64encode(json.dumps({**content, "version": content["version"] + 1}).encode()).decode().strip("=")
    with pytest.raises(InvalidSignature):
        verified(".".join(changed))
    assert told(service)["devices"]["silent"] == 1
    subprocess.run(
        ["mosquitto_pub", *map(str, common), "-m", json.dumps({"version": content["version"]})], check=True, timeout=PATIENCE
    )
    eventually(lambda: told(service)["devices"] == {"ready": 1, "told": 0, "behind": 0, "silent": 0, "expired": 0})
    # Another text is refused, and changes nothing.
    for wrong in ("7", "{}", '{"version":"7"}', '{"version":1e99}', "[" * 2000):
        subprocess.run(["mosquitto_pub", *map(str, common), "-m", wrong], timeout=PATIENCE, capture_output=True)
    assert told(service)["devices"]["ready"] == 1


def test_a_client_that_follows_nothing_is_told_by_hand_until_more_is_announced(service, kiosk, tmp_path):
    """Then the next certificate is judged as safe; and who says himself what he knows is not told."""
    one, other = Identity(service).id, Identity(service).id
    herald("device", "label", other, "model=sensor", "--data", service.data)
    kiosk.start().next("connected")
    eventually(lambda: told(service)["devices"]["ready"] == 1)
    following = Authority.foreign("next")
    pem = following.issue(tmp_path / "next.pem", subject="localhost", names=[x509.DNSName("localhost")], usages=())
    service.ca.write_bytes(service.ca.read_bytes() + following.certificate.public_bytes(serialization.Encoding.PEM))
    kiosk.next("announced", authorities=2)
    eventually(lambda: told(service)["devices"] == {"ready": 1, "told": 0, "behind": 0, "silent": 2, "expired": 0})
    judged = lambda: herald("doctor", "--certificate", pem, "--data", service.data, check=False).stdout
    assert "2 devices do not know every announced authority yet" in judged()
    said = herald("device", "announcement", "--told", one, "--told", one, "--data", service.data)
    assert "1 told by hand" in said.stdout and said.stderr == "herald: devices that were told by hand: 1\n"
    assert told(service, "--told-label", "model=sensor")["devices"] == {
        "ready": 1, "told": 2, "behind": 0, "silent": 0, "expired": 0
    }
    assert "can become the server certificate" in judged() and "not safe" not in judged()
    states = lambda: {
        device["id"]: device["announcement"] for device in json.loads(herald("device", "list", "--data", service.data, "--json").stdout)
    }
    assert sorted(states().values()) == ["ready", "told", "told"]
    assert json.loads(herald("device", "list", "--unready", "--data", service.data, "--json").stdout) == []
    (follower,) = set(states()) - {one, other}
    for wrong, words in ((follower, "says itself what it knows"), ("nobody", "no device is named")):
        refused = herald("device", "announcement", "--told", one, "--told", wrong, "--data", service.data, check=False)
        assert refused.returncode == 1 and words in refused.stderr
    # The next authority is one more that they do not know.
    service.ca.write_bytes(service.ca.read_bytes() + authority())
    eventually(lambda: told(service)["devices"]["silent"] == 2)


@pytest.mark.parametrize("version, words", [("mqttv5", "Server moved"), ("mqttv311", "unavailable")])
def test_mosquitto_hears_that_the_service_has_moved(fresh, version, words):
    service = fresh("--moved-to", "push.example.com").start()
    device = Identity(service)
    heard = subprocess.run(
        ["mosquitto_sub", "-h", "localhost", "-p", str(service.listeners["device"]), "--cafile", service.ca, "--cert", device.path,
         "--key", device.path, "-i", device.id, "-V", version, "-t", f"apps/{TOPIC}/#", "-W", str(PATIENCE)],
        capture_output=True, text=True, timeout=2 * PATIENCE,
    )
    assert heard.returncode != 0 and words in heard.stderr
    # Herald's agents go to announced addresses alone.
    for command in ("status", "doctor"):
        shown = herald(command, "--data", service.data, check=False, env={**os.environ, "HERALD_MOVED_TO": "push.example.com"})
        assert "moved-to is push.example.com:5223, which is not announced" in shown.stdout, shown.stdout


@pytest.mark.parametrize(
    "options, words",
    [
        (["--device-addresses", "a b"], "push.example.com:5223:2191"),
        (["--device-addresses", "a:1:2:3"], "push.example.com:5223:2191"),
        (["--device-addresses", "a:0"], "push.example.com:5223:2191"),
        (["--device-addresses", "push.example.com"], "needs ports"),
        (["--moved-to", "https://a"], "push.example.com:5223"),
    ],
)
def test_wrong_addresses_are_refused_before_anything_listens(tmp_path, options, words):
    result = herald("serve", "--data", tmp_path / "data", "--device-port", "0", "--activation-port", "0", *options, check=False)
    assert result.returncode != 0 and words in result.stderr and len(result.stderr.strip().splitlines()) == 1
