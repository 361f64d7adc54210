"""A relay that sends by the binary interface: each row becomes `sent` once, whatever fails on the way."""

import collections
import json

import pytest

from binary import BAD_TOKEN, accepted
from cutting_proxy import CuttingProxy
from parties import OTHER, dead_app
from provider import Device, away_device
from relay import PAYLOAD, TOPIC, asking, fill
from service import PATIENCE, eventually, free_port, herald

ROWS = 500


@pytest.fixture
def service(fresh):
    return fresh().start()


@pytest.fixture
def proxy(service):
    proxy = CuttingProxy("127.0.0.1", lambda: service.listeners["binary"])
    yield proxy
    proxy.close()


def binary(service, *options, port=None, certificate=None):
    """The options with which a relay sends to the binary listener of a Herald."""
    return [
        "--topic", TOPIC, "--interface", "binary", "--certificate", certificate or service.provider_certificate(),
        "--service", f"localhost:{port or service.listeners['binary']}", "--ca", service.ca, *options,
    ]


def begin(relay, *options):
    relay.options = [str(option) for option in options]
    return relay.start()


def prepare(queue, token, count=ROWS):
    """A queue with rows in it, before the relay comes."""
    connection = queue.connect()
    connection.executescript(herald("relay", "schema", "--database", queue.url).stdout)
    connection.close()
    fill(queue, token, count)


def taken(service, queue):
    """The number of times that the service accepted each row, by the number at the end of its identifier."""
    rows = queue.run("SELECT id, apns_id, status FROM push_queue")

    def counts():
        counts = collections.Counter(accepted(service, TOPIC))
        return {row["id"]: counts[int(row["apns_id"][-8:], 16)] for row in rows}

    # No answer of this interface waits for the journal.
    sent = [row["id"] for row in rows if row["status"] == "sent"]
    return eventually(lambda: (found := counts()) and all(found[id] for id in sent) and found, what="the lines of all rows")


def traced(queue):
    """Asserts that every row got its state once."""
    (row,) = queue.run("SELECT count(*) AS lines, count(DISTINCT id) AS rows FROM trace")
    return row["lines"] == row["rows"]


def test_a_row_reaches_the_device_unchanged(service, queue, relay):
    begin(relay, *binary(service))
    with Device(service) as device:
        device.start()
        id = queue.insert(device_token=device.token, priority=5, expiration=0)
        message = device.next()
        row = queue.done(id)
    assert json.loads(message.payload) == json.loads(PAYLOAD)
    assert (row["status"], row["reason"], row["attempts"]) == ("sent", None, 1) and row["time_sent"]
    # The journal knows it by the end of the identifier.
    eventually(lambda: accepted(service, TOPIC) == [int(row["apns_id"][-8:], 16)], what="the journal's line")


def test_a_bad_row_among_500_is_refused_and_its_neighbours_are_sent_once(service, queue, relay):
    prepare(queue, away_device(service).token)
    bad = [1, 2, 250, 251, ROWS]
    for id in bad:
        queue.run("UPDATE push_queue SET device_token = ? WHERE id = ?", BAD_TOKEN, id)
    begin(relay, *binary(service))
    queue.drained()
    rows = queue.run("SELECT id, status, reason FROM push_queue")
    assert [row["id"] for row in rows if (row["status"], row["reason"]) == ("refused", "BadDeviceToken")] == bad
    assert sum(row["status"] == "sent" for row in rows) == ROWS - len(bad)
    assert taken(service, queue) == {row["id"]: int(row["id"] not in bad) for row in rows}
    assert traced(queue)


@pytest.mark.parametrize("direction, after", [("up", 25_000), ("down", 4_000)])
def test_rows_of_a_broken_connection_are_looked_up_and_not_resent(
    service, queue, relay, proxy, direction, after
):
    prepare(queue, away_device(service).token)
    proxy.plan(direction, after)
    begin(relay, *binary(service, *asking(service), port=proxy.port))
    queue.drained()
    assert proxy.cuts >= 1
    assert queue.count("sent") == ROWS and traced(queue)
    assert set(taken(service, queue).values()) == {1}


def test_rows_of_a_broken_connection_are_resent_without_a_journal(service, queue, relay, proxy):
    prepare(queue, away_device(service).token)
    proxy.plan("up", 25_000)
    begin(relay, *binary(service, port=proxy.port))
    queue.drained()
    assert queue.count("sent") == ROWS and traced(queue)
    assert relay.metric('herald_client_notifications_total{outcome="ambiguous"}') > 0
    assert set(taken(service, queue).values()) <= {1, 2}


@pytest.mark.slow
def test_a_killed_relay_looks_up_the_outcome_of_its_rows(service, queue, relay):
    token, total = away_device(service).token, 1000
    prepare(queue, token, total)
    # The service confirms 200 at most in a second, so the relay has not sent all when it is killed.
    begin(relay, *binary(service, *asking(service), "--relay-window", "200"))
    # The first are with the service, and the relay does not know it yet.
    eventually(lambda: len(accepted(service, TOPIC)) > 100)
    relay.kill()
    while queue.count("sent") == total:
        # Again, if the machine has paused until all were sent.
        assert total < 5000
        queue.many("INSERT INTO push_queue (device_token, topic, payload) VALUES (?, ?, ?)", [(token, TOPIC, PAYLOAD)] * 1000)
        relay.start()
        eventually(lambda before=total: len(accepted(service, TOPIC)) > before + 100)
        relay.kill()
        total += 1000
    relay.start()
    queue.drained(timeout=4 * PATIENCE)
    assert queue.count("sent") == total and traced(queue)
    assert set(taken(service, queue).values()) == {1}


@pytest.mark.slow
def test_a_restarted_service_gets_each_row_once(fresh, queue, relay):
    service = fresh("--binary-port", str(free_port())).start()
    prepare(queue, away_device(service).token, 3000)
    begin(relay, *binary(service))
    eventually(lambda: queue.count("sent") > 0)
    assert service.stop() == 0
    service.start()
    queue.drained(timeout=2 * PATIENCE)
    assert queue.count("sent") == 3000 and traced(queue)
    assert set(taken(service, queue).values()) == {1}


def test_a_refused_certificate_leaves_no_row_in_doubt(service, queue, relay, fresh):
    token = away_device(service).token
    foreign = fresh().start().provider_certificate()
    for certificate, reason, words in [
        (service.provider_certificate(environment="sandbox"), "Unreachable", "closed the connection without an answer"),
        (foreign, "Untrusted", "refuses the provider's certificate"),
    ]:
        begin(relay, *binary(service, certificate=certificate))
        id = queue.insert(device_token=token)
        # The service's word, its alert, may get lost in the end of a connection; then the row is tried again.
        row = eventually(lambda: (row := queue.row(id))["reason"] == reason and row, timeout=PATIENCE, what=reason)
        assert (row["status"], row["uncertain"]) == ("queued", 0)
        assert words in row["detail"], row["detail"]
        code, body = relay.get("/health")
        assert code in (200, 503), body
        assert relay.stop() == 0
    assert accepted(service, TOPIC) == []
    # With the right one they go.
    begin(relay, *binary(service))
    queue.drained()
    assert queue.count("sent") == 2


def test_a_certificate_of_another_app_reaches_no_device(service, queue, relay):
    begin(relay, *binary(service, certificate=service.provider_certificate(OTHER)))
    row = queue.done(queue.insert(device_token=away_device(service).token))
    assert (row["status"], row["reason"]) == ("refused", "BadDeviceToken")
    # That may be the environment's fault: the token is not marked dead.
    assert queue.run("SELECT * FROM devices WHERE dead_at IS NOT NULL") == []


def test_dead_tokens_come_from_the_feedback_service(service, queue, relay):
    gone, there = away_device(service), away_device(service)
    dead_app(gone)
    feedback = ["--feedback", f"localhost:{service.listeners['feedback']}", "--feedback-every", "1s"]
    begin(relay, *binary(service, *feedback))
    (dead,) = eventually(lambda: queue.run("SELECT device_token, evidence FROM devices WHERE dead_at IS NOT NULL"))
    assert dead["device_token"] == gone.token and dead["evidence"].startswith("feedback of localhost:")
    row = queue.done(queue.insert(device_token=gone.token))
    assert (row["status"], row["reason"]) == ("refused", "Unregistered")
    assert queue.done(queue.insert(device_token=there.token))["status"] == "sent"


def test_unsupported_fields_are_refused_with_a_reason(service, queue, relay):
    begin(relay, *binary(service))
    token = away_device(service).token
    silent = json.dumps({"aps": {"content-available": 1}})
    long = json.dumps({"aps": {}, "x": "x" * 2048})
    cases = [
        (dict(collapse_id="dinner"), "CollapseIdNotCarried"), (dict(priority=1), "PriorityNotCarried"),
        (dict(push_type="background"), "PushTypeNotCarried"), (dict(push_type="mdm"), "PushTypeNotCarried"),
        (dict(push_type="alert", payload=silent), "PushTypeNotCarried"), (dict(payload=long), "PayloadTooLarge"),
    ]
    ids = [queue.insert(device_token=token, **columns) for columns, _ in cases]
    for row, (_, reason) in zip(queue.done(*ids), cases):
        assert (row["status"], row["reason"]) == ("refused", reason)
    carried = [dict(push_type="alert"), dict(payload=silent), dict(payload=silent, push_type="background", priority=5)]
    for row in queue.done(*[queue.insert(device_token=token, **columns) for columns in carried]):
        assert row["status"] == "sent"
    # The certificate's topic is the only one.
    row = queue.done(queue.insert(device_token=token, topic=TOPIC + ".voip"))
    assert (row["status"], row["reason"]) == ("failed", "NoCredential")


def test_binary_and_http_2_services_work_side_by_side(service, queue, relay, tmp_path):
    common = {"certificate": str(service.provider_certificate()), "topic": TOPIC, "ca": str(service.ca)}
    apps = [
        common | {"name": "old", "interface": "binary", "service": f"localhost:{service.listeners['binary']}"},
        common | {"name": "new", "interface": "http2", "service": f"localhost:{service.listeners['api']}"},
    ]
    config = tmp_path / "relay.yaml"
    config.write_text(json.dumps({"apps": apps}))
    begin(relay, "--config", config)
    token = away_device(service).token
    old, new = queue.done(*[queue.insert(device_token=token, service=name) for name in ["old", "new"]])
    assert (old["status"], new["status"]) == ("sent", "sent")
    assert service.journal(old["apns_id"]) == [] and service.journal(new["apns_id"]) != []


@pytest.mark.parametrize(
    "options, words",
    [
        (["--topic", TOPIC], "Apple has shut its binary interface down: name another service in `service`"),
        (["--service", "localhost:2195"], "give that one in `topic`"),
        (["--service", "localhost:2195", "--topic", TOPIC, "--key", "AuthKey_ABCDE12345.p8", "--team", "TEAM123456"],
         "give `certificate`, not `key`"),
    ],
)
def test_an_unusable_configuration_is_explained(tmp_path, options, words):
    pem = tmp_path / "AuthKey_ABCDE12345.p8"
    pem.write_text("x")
    pem.chmod(0o600)
    options = [str(pem) if option.startswith("AuthKey") else option for option in options]
    credential = [] if "--key" in options else ["--certificate", str(pem)]
    result = herald(
        "relay", "run", "--database", f"sqlite://{tmp_path}/queue.db", "--interface", "binary", *credential, *options,
        check=False,
    )
    assert result.returncode != 0 and words in result.stderr, result.stderr


def test_an_unknown_interface_is_reported(tmp_path):
    pem = tmp_path / "provider.pem"
    pem.write_text("x")
    pem.chmod(0o600)
    result = herald(
        "relay", "run", "--database", f"sqlite://{tmp_path}/queue.db", "--certificate", pem, "--interface", "http3",
        check=False,
    )
    assert result.returncode != 0 and "`interface` must be http2 or binary" in result.stderr
