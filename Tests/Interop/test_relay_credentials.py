"""A relay with a refused credential: its rows wait until the credential is replaced, and other rows do not."""

import json
import shutil
import subprocess

from provider import away_device
from relay import asking, received
from service import PATIENCE, TEAM, TOPIC, eventually, herald

OTHER = "com.example.other"
ROWS = 60


def to(service):
    return ["--service", f"localhost:{service.listeners['api']}", "--ca", service.ca, *asking(service)]


def fill(queue, token, topic=TOPIC):
    queue.many(
        "INSERT INTO push_queue (device_token, topic, payload) VALUES (?, ?, '{\"aps\":{}}')", [(token, topic)] * ROWS
    )


def assert_waiting(relay, queue, reason):
    """Asserts that all rows wait, and that health, status and log name the reason."""
    def problem():
        code, body = relay.get("/health")
        return code == 503 and [line for line in json.loads(body)["problems"] if f"({reason})" in line]

    (line,) = eventually(problem, what=f"a problem for {reason}")
    assert "refuses the credential" in line and TOPIC in line
    eventually(lambda: relay.command("status")["waiting"] == {reason: ROWS}, what=f"{ROWS} rows that wait")
    assert queue.count("queued") == ROWS
    # One line for all of them.
    (line,) = eventually(lambda: [line for line in relay.lines if "the service refuses the credential" in line], what="the line")
    assert " error " in line and reason in line


def assert_sent(relay, queue, service):
    """Asserts that each row is sent once, with the right credential."""
    queue.drained(timeout=PATIENCE)
    assert queue.count("sent") == ROWS
    counts = received(service, {row["apns_id"] for row in queue.run("SELECT apns_id FROM push_queue")})
    assert len(counts) == ROWS and set(counts.values()) == {1}
    eventually(lambda: relay.get("/health")[0] == 200)


def test_a_revoked_certificate_refuses_no_row(fresh, queue, relay, tmp_path):
    service = fresh().start()
    token = away_device(service).token
    pem = tmp_path / "provider.pem"
    shutil.copy(service.provider_certificate(), pem)
    (credential,) = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
    herald("provider", "revoke", credential["id"], "--data", service.data)
    relay.options = [str(option) for option in ["--topic", TOPIC, "--certificate", pem, *to(service)]]
    relay.start()
    fill(queue, token)
    assert_waiting(relay, queue, "BadCredential")
    # A new one in the same file, and no more.
    shutil.copy(service.provider_certificate(), pem)
    relay.reload()
    assert_sent(relay, queue, service)


def test_a_key_unknown_to_the_service_refuses_no_row(fresh, queue, relay, tmp_path):
    service = fresh().start()
    token = away_device(service).token
    key = tmp_path / "AuthKey_ABCDE12345.p8"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key], check=True)
    relay.options = [str(option) for option in ["--topic", TOPIC, "--key", key, "--team", TEAM, *to(service)]]
    relay.start()
    fill(queue, token)
    assert_waiting(relay, queue, "InvalidProviderToken")
    # One row is tried at a time, not all of them again and again.
    attempts = relay.metric("herald_relay_send_duration_seconds_count")
    assert attempts is None or attempts < 3 * ROWS
    # The refusal is not final: a relay with the right key continues.
    assert relay.stop() == 0
    path, identifier, team = service.provider_key()
    relay.options = [str(option) for option in ["--topic", TOPIC, "--key", path, "--key-id", identifier, "--team", team, *to(service)]]
    relay.start()
    assert_sent(relay, queue, service)


def test_a_topic_without_a_credential_is_the_rows_fault(fresh, queue, relay):
    service = fresh().start()
    device = away_device(service, TOPIC, OTHER)
    certificate = service.provider_certificate(TOPIC)
    # A credential for whatever it is for: a row for another app is refused, and its neighbours are sent.
    relay.options = [str(option) for option in ["--certificate", certificate, *to(service)]]
    relay.start()
    mine = [queue.insert(device_token=device.tokens[TOPIC]) for _ in range(3)]
    foreign = queue.insert(device_token=device.tokens[OTHER], topic=OTHER)
    wrong = queue.insert(device_token="00" * 32)
    assert {row["status"] for row in queue.done(*mine)} == {"sent"}
    assert [queue.done(row)["reason"] for row in (foreign, wrong)] == ["TopicDisallowed", "BadDeviceToken"]
    assert relay.get("/health")[0] == 200
    # The configuration says that it is for that app: then it is the credential that is wrong.
    assert relay.stop() == 0
    relay.options = ["--topic", OTHER, *relay.options]
    relay.start()
    foreign = queue.insert(device_token=device.tokens[OTHER], topic=OTHER)
    eventually(lambda: relay.command("status")["waiting"] == {"TopicDisallowed": 1})
    assert queue.row(foreign)["status"] == "queued" and queue.row(foreign)["attempts"] == 0
    # Its time is over in the end.
    queue.run("UPDATE push_queue SET give_up_at = strftime('%s', 'now', '+1 second'), due_at = 0 WHERE id = ?", foreign)
    row = queue.done(foreign, timeout=PATIENCE)
    assert row["status"] == "expired"
