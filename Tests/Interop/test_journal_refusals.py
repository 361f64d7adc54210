"""The journal says who sent a notification and what it was, and why the service refused a request."""

import json
import re
import subprocess
import time
import urllib.request

import pytest

from binary import Binary, framed
from parties import OTHER, STRANGERS, new_id
from provider import Provider, away_device
from service import PATIENCE, TOPIC, herald


def curl(service, certificate, token, id, payload=b"{}", **fields):
    """Sends a notification with curl; the status of the answer."""
    port = service.listeners["api"]
    fields = {"id": id, "push_type": "alert", **fields}
    headers = [part for name, value in fields.items() for part in ("--header", f"apns-{name.replace('_', '-')}: {value}")]
    result = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--http2", "--cacert", service.ca, "--cert", certificate, *headers,
            "--data-binary", "@-", "--output", "/dev/null", "--write-out", "%{http_code}", "--resolve",
            f"localhost:{port}:127.0.0.1", f"https://localhost:{port}/3/device/{token}",
        ],
        input=payload, capture_output=True, timeout=PATIENCE, check=True,
    )
    return int(result.stdout)


def credential(service, certificate):
    """The identifier of a certificate, as `herald provider list` shows it."""
    serial = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-serial"], capture_output=True, text=True, check=True
    ).stdout.strip().removeprefix("serial=").lower()
    listed = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
    (id,) = [one["id"] for one in listed if one.get("serial", "").lstrip("0") == serial.lstrip("0")]
    return id


def test_a_refused_request_is_explained_by_the_journal(shared, parties):
    sender = credential(shared, parties.certificate)
    cases = [
        (400, "BadPriority", parties.token, {"priority": "7"}, TOPIC),
        (400, "TopicDisallowed", parties.token, {"topic": STRANGERS}, STRANGERS),
        (400, "BadDeviceToken", "0f" * 32, {}, TOPIC),
        (410, "Unregistered", parties.dead_token, {}, TOPIC),
        (413, "PayloadTooLarge", parties.token, {"payload": b"{" + b" " * 5000 + b"}"}, TOPIC),
    ]
    for status, reason, token, fields, topic in cases:
        id = new_id()
        assert curl(shared, parties.certificate, token, id, **fields) == status
        (line,) = shared.journal(id)
        assert (line["state"], line["reason"], line["status"], line["topic"]) == ("refused", reason, status, topic)
        assert line["provider"] == sender and line["type"] == "alert" and line["explanation"]
        assert line["size"] == len(fields.get("payload", b"{}"))
        assert bool(line["device"]) == (token != "0f" * 32)
        text = herald("journal", "--data", shared.data, id).stdout
        assert f"refused ({reason})" in text and f"{status} {reason}: {line['explanation']}" in text


def test_a_forged_provider_token_is_in_the_journal_without_a_sender(shared, parties):
    with Provider(shared) as provider:
        answer = provider.push(parties.token, authorization="bearer x.y.z")
    assert answer.status == 403
    (line,) = shared.journal(answer.id)
    assert (line["reason"], line["status"]) == ("InvalidProviderToken", 403) and "provider" not in line


def test_a_topic_that_no_app_has_is_found(shared, parties):
    topic = "com.example.misspelled"
    with Provider(shared, key=parties.key) as provider:
        answers = [provider.push(parties.token, topic=topic, id=new_id()) for _ in range(2)]
    assert [answer.reason for answer in answers] == ["DeviceTokenNotForTopic"] * 2
    lines = shared.journal("--topic", topic)
    assert [line["id"].lower() for line in lines] == [answer.id.lower() for answer in answers]
    assert {(line["topic"], line["provider"]) for line in lines} == {(topic, parties.key[1])}


def test_a_received_notification_has_its_sender_and_kind(shared, parties):
    with Provider(shared, key=parties.key) as provider:
        id = provider.push(parties.token, {"aps": {"content-available": 1}}, push_type="background", priority=5).id
    received, *others = shared.journal(id)
    assert (received["provider"], received["type"], received["priority"]) == (parties.key[1], "background", 5)
    assert received["size"] == len('{"aps":{"content-available":1}}')
    assert others and not any("provider" in line or "size" in line for line in others)


def test_a_refusal_of_the_binary_interface_is_in_the_journal(shared):
    certificate = shared.provider_certificate(OTHER)
    with Binary(shared, certificate) as connection:
        connection.send(framed(0x0BADCAFE, "0f" * 32))
        assert connection.answer() == (8, 0x0BADCAFE)
    (line,) = [line for line in shared.journal("--topic", OTHER) if line["id"].lower().endswith("0badcafe")]
    assert (line["state"], line["reason"]) == ("refused", "BadDeviceToken")
    assert line["provider"] == credential(shared, certificate)


def test_senders_keep_their_names_over_a_restart(fresh):
    service = fresh().start()
    device, certificate = away_device(service), service.provider_certificate()
    with Provider(service, certificate) as provider:
        id = provider.push(device.token).id
    running = service.journal(id)
    assert running[0]["provider"] == credential(service, certificate)
    service.stop()
    assert service.journal(id) == running
    service.start()
    assert service.journal(id) == running


def test_a_setting_explains_every_answer(fresh):
    service = fresh("--explain", "always").start()
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        assert provider.push(device.token).header("herald-explanation").startswith("stored: the device is away")
        assert "apns-priority is" in provider.push(device.token, priority=7).body.decode()


@pytest.mark.slow
def test_a_flood_of_refused_requests_does_not_fill_the_journal(fresh):
    service = fresh().start()
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        begin = time.monotonic()
        answers = provider.push_many(["0f" * 32] * 4000)
        seconds = time.monotonic() - begin
        assert {answer.reason for answer in answers} == {"BadDeviceToken"}
        id = provider.push(device.token).id
    assert [line["state"] for line in service.journal(id)] == ["received", "stored"]
    lines = service.journal("--topic", TOPIC, "--limit", "10000")
    refused = sum(line["state"] == "refused" for line in lines)
    assert 2000 <= refused <= min(4000, 2000 + 200 * (seconds + 1))
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE) as answer:
        dropped = re.search(r"^herald_journal_refusals_dropped_total (\d+)", answer.read().decode(), re.M)
    assert refused + int(dropped[1] if dropped else 0) == 4000
