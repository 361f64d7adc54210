"""Fleets over the admin API: long lists, labels, last connections, invitations, credentials without private keys."""

import json
import re
import sqlite3
import subprocess

import pytest

import channels
from est_client import enroll, invite, key_and_request
from parties import advance
from provider import HELLO, Provider, away_device, listening_device, provider_token
from service import HERALD, TEAM, TOPIC, eventually, herald
from test_console_description import ask


@pytest.fixture
def service(fresh):
    return fresh().start()


def answer(service, method, path, status=200, **options):
    got, _, text = ask(service, method, path, **options)
    assert got == status, text
    return json.loads(text)


def pages(service, path, **parameters):
    """The parts of a list, to its end."""
    after = ""
    while True:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        part = answer(service, "GET", f"{path}?{query}{after}")
        yield part["items"]
        if part["next"] is None:
            return
        after = f"&after={part['next']}"


def test_five_thousand_devices_come_in_parts(fresh):
    service = fresh().start()
    service.stop()
    with sqlite3.connect(service.data / "trust" / "ledger.db") as ledger:
        for number in range(5000):
            ledger.execute(
                "INSERT INTO device (number, id, name, created) VALUES (?, ?, ?, 1)",
                (number + 1, f"d{(number * 2741) % 5000:05}", f"lamp {number}"),
            )
            ledger.execute("INSERT INTO device_certificate VALUES (?, 0, 'aa', 2000000000000)", (number + 1,))
    ledger.close()
    service.start()
    parts = list(pages(service, "/v1/devices", limit=1000))
    assert [len(part) for part in parts] == [1000] * 5
    ids = [device["id"] for part in parts for device in part]
    assert ids == sorted(set(ids)) and len(ids) == 5000
    assert len(answer(service, "GET", "/v1/devices")["items"]) == 100
    answer(service, "GET", "/v1/devices?limit=1001", 400)
    assert [one["name"] for one in answer(service, "GET", "/v1/devices?q=LAMP%204999")["items"]] == ["lamp 4999"]
    assert answer(service, "GET", "/v1/devices?connected=true") == {"items": [], "next": None}
    assert [device["id"] for device in json.loads(herald("device", "list", "--data", service.data, "--json").stdout)] == ids
    table = herald("device", "list", "--data", service.data).stdout.splitlines()
    assert len(table) == 5001 and table[0].startswith("ID ") and table[5000].startswith("d04999 ")


def test_a_device_has_a_page_of_its_own(service):
    with listening_device(service, name="lamp") as device:
        one = f"/v1/devices/{device.id}"
        shown = answer(service, "GET", one)
        assert (shown["connected"], shown["last_address"], shown["waiting"]) == (True, "127.0.0.1", 0)
        assert "connected_since" in shown and shown["name"] == "lamp"
        (app,) = shown["apps"]
        assert (app["topic"], app["environment"], app["enabled"]) == (TOPIC, "production", True) and "removed" not in app
        minted = answer(service, "POST", f"{one}/apps/{TOPIC}/token")["token"]
        inspected = herald("token", "inspect", "--data", service.data, minted).stdout
        assert device.id in inspected and TOPIC in inspected
        herald("device", "label", "--data", service.data, device.id, "room=hall", "floor=2")
        herald("device", "label", "--data", service.data, device.id, "floor=")
        found = answer(service, "GET", "/v1/devices?q=room=hall&connected=true")["items"]
        assert [(entry["id"], entry["labels"]) for entry in found] == [(device.id, {"room": "hall"})]
        assert answer(service, "GET", "/v1/devices?connected=false")["items"] == []
        assert answer(service, "POST", f"{one}/disconnect")["id"] == device.id
        since = shown["connected_since"]
        # Some clients come back by themselves.
        eventually(lambda: answer(service, "GET", one).get("connected_since", "gone") != since, what="the end of the connection")
    service.stop()
    service.start()
    back = answer(service, "GET", one)
    assert not back["connected"] and back["last_address"] == "127.0.0.1" and back["last_seen"] > since
    assert back["labels"] == {"room": "hall"}
    (listed,) = json.loads(herald("device", "list", "--data", service.data, "--search", "room=hall", "--json").stdout)
    assert listed["last_seen"] == back["last_seen"]


def test_labels_that_are_given_at_once_are_all_kept(service):
    device = away_device(service)
    names = {f"room{number}": "full" for number in range(12)}
    commands = [
        subprocess.Popen([HERALD, "device", "label", "--data", service.data, device.id, f"{name}=full"]) for name in names
    ]
    assert [command.wait() for command in commands] == [0] * len(commands)
    assert answer(service, "GET", f"/v1/devices/{device.id}")["labels"] == names


def test_a_device_shows_the_newest_that_waits_for_each_app(service):
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        newest = [provider.push(device.token, {"n": number}, expiration=channels.soon()) for number in range(2)][-1]
    shown = answer(service, "GET", f"/v1/devices/{device.id}")
    assert shown["waiting"] == 1
    waiting = shown["apps"][0]["waiting"]
    assert waiting["id"].upper() == newest.id.upper() and set(waiting) == {"id", "unique_id", "received", "expires"}
    assert answer(service, "GET", f"/v1/journal/{waiting['unique_id']}")["state"].startswith("stored")
    device.start()
    eventually(lambda: "waiting" not in answer(service, "GET", f"/v1/devices/{device.id}")["apps"][0])
    device.stop()


def test_an_invitation_serves_so_many_devices_and_no_more(service, tmp_path):
    requests = [key_and_request(tmp_path, stem=f"device-{number}")[1] for number in range(4)]
    order = {"uses": 3, "name": "lamp", "days": 2, "labels": {"room": "hall"}}
    made = answer(service, "POST", "/v1/invitations", body=order)
    assert [enroll(service, made["code"], request).status for request in requests] == [200] * 3 + [401]
    (shown,) = answer(service, "GET", "/v1/invitations")["items"]
    assert (shown["state"], shown["used"], shown["uses"]) == ("used", 3, 3) and "code" not in shown
    devices = answer(service, "GET", "/v1/devices")["items"]
    assert [(one["name"], one["invitation"], one["labels"]) for one in devices] == [("lamp", made["id"], {"room": "hall"})] * 3
    # A device that never came makes room for another.
    lost = devices[0]["id"]
    said = herald("device", "revoke", "--data", service.data, lost).stdout
    assert f"invitation {made['id']} may be used once more" in said
    assert enroll(service, made["code"], requests[3]).status == 200
    (shown,) = answer(service, "GET", "/v1/invitations")["items"]
    assert (shown["state"], shown["used"]) == ("used", 3)


def found(service, *options):
    """The names of the devices that `herald device list` shows."""
    listed = herald("device", "list", "--json", "--data", service.data, *options).stdout
    return {device["name"] for device in json.loads(listed)}


def test_devices_are_found_by_label_and_by_their_absence(fresh):
    service = fresh("--clock", "adjustable").start()
    away, here = away_device(service, name="away"), listening_device(service, name="here")
    never, _ = service.device("never")
    for device, label in (away, "room=hall"), (here, "room=hall 2"):
        herald("device", "label", "--data", service.data, device.id, label, "floor=2")
    assert found(service, "--label", "room=hall", "--label", "floor") == {"away"}
    assert found(service, "--label", "room") == {"away", "here"}
    eventually(lambda: found(service, "--unused") == {"never"})
    asked = answer(service, "GET", "/v1/devices?label=room=hall&label=floor=2")["items"]
    assert [one["id"] for one in asked] == [away.id]
    assert "label must be a label like room=hall" in answer(service, "GET", "/v1/devices?label==hall", 400)["error"]
    assert [one["name"] for one in answer(service, "GET", "/v1/devices?unused=true")["items"]] == ["never"]
    assert answer(service, "GET", "/v1/devices?offline_days=7")["items"] == []
    # Is everybody back?
    assert found(service, "--away") == {"away", "never"} and found(service, "--away", "--label", "room=hall 2") == set()
    assert found(service, "--away", "--unused") == {"never"} and found(service, "--away", "--search", "AWA") == {"away"}
    advance(service, 8 * 86_400)
    offline = answer(service, "GET", "/v1/devices?offline_days=7")["items"]
    assert {one["name"] for one in offline} == {"away", "never"}, "one is connected"
    assert found(service, "--offline", "9d") == set()
    assert found(service, "--offline", "7d") >= {"away", "never"}
    herald("device", "revoke", "--data", service.data, away.id)
    assert "away" not in found(service, "--offline", "7d") and found(service, "--away") == {"never"}
    assert [one["name"] for one in answer(service, "GET", "/v1/devices?connected=false")["items"]] == ["never"]
    for wrong in (["7"], ["1h"], ["soon"], ["7d", "--away"]):
        assert herald("device", "list", "--offline", *wrong, "--data", service.data, check=False).returncode == 64
    here.stop()
    assert never
    service.stop()
    refused = herald("device", "list", "--away", "--data", service.data, check=False)
    assert refused.returncode == 1 and "no service runs" in refused.stderr


def send(service, certificate, *options, check=True):
    command = ("send", "--topic", TOPIC, "--certificate", certificate, "--data", service.data, *options)
    return herald(*command, check=check)


def test_a_notification_goes_to_all_devices_of_a_label(service):
    certificate = service.provider_certificate()
    away, here = away_device(service, name="away"), listening_device(service, name="here")
    other, lost = away_device(service, name="other"), away_device(service, name="lost")
    for device in away, here, lost:
        herald("device", "label", "--data", service.data, device.id, "room=hall")
    herald("device", "revoke", "--data", service.data, lost.id)
    table = send(service, certificate, "--label", "room=hall", "--alert", "Hello").stdout.splitlines()
    assert len(table) == 3 and table[0].split() == ["DEVICE", "NAME", "OUTCOME"]
    outcomes = {line.split()[1]: line.split(maxsplit=2)[2] for line in table[1:]}
    # An acknowledgement that takes a moment comes after the answer.
    assert outcomes["here"].startswith(("delivered:", "stored: Herald has sent it"))
    assert outcomes["away"].startswith("stored: the device is away")
    assert here.next().json["aps"]["alert"] == "Hello"
    told = json.loads(send(service, certificate, "--label", "room=hall", "--push-type", "background", "--json").stdout)
    assert {(one["device"], one["answer"]["status"]) for one in told} == {(away.id, 200), (here.id, 200)}
    nobody = send(service, certificate, "--label", "room=attic", "--alert", "x", check=False)
    assert nobody.returncode == 1 and "no device with the label room=attic has the app" in nobody.stderr
    both = send(service, certificate, "--label", "room=hall", "--alert", "x", other.token, check=False)
    assert both.returncode == 64
    # Of another topic's credential each is refused, and the command says so.
    stranger = service.provider_certificate("com.example.other")
    refused = send(service, stranger, "--label", "room=hall", "--alert", "x", check=False)
    assert refused.returncode == 1 and refused.stdout.count("refused: ") == 2
    here.stop()


def test_a_withdrawn_invitation_serves_nobody_else(service, tmp_path):
    _, request = key_and_request(tmp_path)
    first, second = invite(service, "--uses", 5), invite(service, "--uses", 5)
    for one in first, second:
        assert enroll(service, one["code"], request).status == 200
    herald("device", "withdraw", "--data", service.data, first["id"])
    assert answer(service, "DELETE", f"/v1/invitations/{second['id']}")["state"] == "withdrawn"
    _, other = key_and_request(tmp_path, stem="other")
    for one in first, second:
        assert enroll(service, one["code"], other).status == 401
    assert len(answer(service, "GET", "/v1/devices")["items"]) == 2
    table = herald("device", "invitations", "--data", service.data).stdout
    assert len(re.findall(r"withdrawn +1/5 ", table)) == 2


def push(service, device, *options):
    """The status of a push by curl."""
    return subprocess.run(
        [
            "curl", "-sS", "--http2", "--max-time", "50", "--cacert", str(service.ca), "-H", f"apns-topic: {TOPIC}",
            "-H", "apns-push-type: alert", "-d", json.dumps(HELLO), "-o", "/dev/null", "-w", "%{http_code}",
            *map(str, options), f"https://127.0.0.1:{service.listeners['api']}/3/device/{device.token}",
        ],
        capture_output=True, text=True, check=True,
    ).stdout


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def test_a_provider_gets_a_certificate_for_its_own_key(service, tmp_path):
    key, request = tmp_path / "key.pem", tmp_path / "request.pem"
    openssl(
        "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
        "-subj", "/CN=ci", "-out", request,
    )
    order = {"csr": request.read_text(), "topics": [TOPIC], "environments": ["production"], "days": 30}
    made = answer(service, "POST", "/v1/credentials/certificate", body=order)
    assert "PRIVATE KEY" not in json.dumps(made) and made["certificate"].count("BEGIN CERTIFICATE") == 2
    chain = tmp_path / "chain.pem"
    chain.write_text(made["certificate"])
    with listening_device(service) as device:
        assert push(service, device, "--cert", chain, "--key", key) == "200"
        device.next()
    id = made["credential"]["id"]
    used = answer(service, "GET", f"/v1/credentials/{id}")
    assert (used["requests"], used["refused"]) == (1, 0) and used["first_used"] == used["last_used"]
    answer(service, "POST", "/v1/credentials/certificate", 400, body={**order, "days": 0})
    answer(service, "POST", "/v1/credentials/certificate", 400, body={**order, "topics": ["a..b"]})


@pytest.mark.parametrize("way", ["api", "command"])
def test_a_provider_signs_with_its_own_key(service, tmp_path, way):
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    if way == "api":
        order = {"public_key": public.read_text(), "team": TEAM, "topics": [TOPIC]}
        id = answer(service, "POST", "/v1/credentials/key", body=order)["id"]
        refusal = answer(service, "POST", "/v1/credentials/key", 400, body={**order, "public_key": private.read_text()})
        assert "it has a private key, which belongs nowhere but with the provider" in refusal["error"]
    else:
        made = herald("provider", "key", "--data", service.data, "--team", TEAM, "--public-key", public, "--json").stdout
        id = json.loads(made)["id"]
    with listening_device(service) as device:
        bearer = provider_token((private, id, TEAM))
        assert push(service, device, "-H", f"authorization: bearer {bearer}") == "200"
        device.next()
        assert push(service, device, "-H", f"authorization: bearer {bearer}", "-H", "apns-priority: 3") == "400"
    used = answer(service, "GET", f"/v1/credentials/{id}")
    assert (used["requests"], used["refused"]) == (2, 1)
