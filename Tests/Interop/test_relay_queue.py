"""The relay: rows in, notifications out, and the outcome of each, on either database."""

import datetime
import json
import os
import re
import sqlite3
import time

import pytest

from commands import one_line
from parties import dead_app, new_id
from provider import away_device, listening_device
from relay import PAYLOAD, PostgresServer, Relay, SQLiteQueue, sending
from service import PATIENCE, TOPIC, eventually, free_port, herald

NOBODY = "ab" * 32


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def queue(request, tmp_path):
    if request.param == "sqlite":
        return SQLiteQueue(tmp_path / "queue.db")
    return request.getfixturevalue("postgres").queue()


@pytest.fixture
def start(queue):
    """Starts relays on the queue, and ends them with the test."""
    relays = []

    def start(*options):
        relays.append(Relay(queue.url, *options).start())
        return relays[-1]

    yield start
    for relay in relays:
        relay.close()


@pytest.fixture
def relay(shared, start):
    return start("--topic", TOPIC, *sending(shared))


@pytest.fixture(scope="module")
def device(shared):
    device = listening_device(shared)
    yield device
    device.stop()


def text():
    return json.dumps({"aps": {"alert": new_id()}})


def test_a_row_of_three_columns_is_sent(relay, queue, device):
    payload = text()
    row = queue.done(queue.insert(device_token=device.token, payload=payload))
    assert row["status"] == "sent" and row["reason"] is None and row["attempts"] == 1
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(row["time_sent"])) and row["time_queued"]
    message = device.next()
    assert message.payload.decode() == payload and message.id == row["apns_id"]
    assert eventually(lambda: [line for line in relay.lines if f"row={row['id']} " in line])
    assert not [line for line in relay.lines if device.token in line or payload in line]


def test_every_column_reaches_the_device(relay, queue, device):
    soon = int(time.time()) + 3600
    row = queue.done(queue.insert(
        device_token=device.token, payload=text(), priority=5, expiration=soon, collapse_id="match", push_type="alert"
    ))
    message = device.next()
    assert row["status"] == "sent"
    assert message.property("apns-priority") == "5" and message.property("apns-collapse-id") == "match"
    assert 3500 < message.expiry <= 3600


def test_a_row_whose_time_is_taken_back_is_sent_again(relay, queue, device):
    """The queue of the tutorial: a device token and a payload, pending while `time_sent` is NULL."""
    payload = text()
    first = queue.done(queue.insert(device_token=device.token, topic=None, payload=payload))
    # The relay has one app, which is the row's.
    assert (first["status"], first["topic"]) == ("sent", TOPIC) and first["time_sent"]
    assert device.next().payload.decode() == payload
    queue.run("UPDATE push_queue SET time_sent = NULL WHERE id = ?", first["id"])
    assert device.next().payload.decode() == payload
    again = queue.done(first["id"])
    assert again["status"] == "sent" and again["time_sent"] and again["apns_id"] != first["apns_id"]


def test_a_row_waits_for_its_time(relay, queue, device):
    due = int(time.time()) + 2
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(due))
    id = queue.insert(device_token=device.token, payload=text(), send_after=moment + ("+00" if "postgres" in queue.url else ""))
    queue.done(queue.insert(device_token=device.token, payload=text()))
    early = queue.row(id)["status"]
    assert early == "queued" or time.time() >= due
    row = queue.done(id)
    assert row["status"] == "sent" and str(row["time_sent"])[:19] >= moment
    device.next(), device.next()


def test_an_expired_row_is_not_sent(relay, queue, device):
    row = queue.done(queue.insert(device_token=device.token, give_up_at="2026-01-01 00:00:00"))
    assert (row["status"], row["time_sent"], row["attempts"]) == ("expired", None, 0)


def test_poisoned_rows_fail_alone(relay, queue, device):
    long = json.dumps({"aps": {"alert": "x" * 5000}})
    bad = {
        "MissingDeviceToken": {"device_token": None}, "BadDeviceToken": {"device_token": "not hex"},
        "BadTopic": {"device_token": NOBODY, "topic": "a b"},
        "PayloadEmpty": {"device_token": NOBODY, "payload": None}, "BadPayload": {"device_token": NOBODY, "payload": "{"},
        "PayloadTooLarge": {"device_token": NOBODY, "payload": long},
        "BadPriority": {"device_token": NOBODY, "priority": 7},
        "InvalidPushType": {"device_token": NOBODY, "push_type": "loud"},
        "BadCollapseId": {"device_token": NOBODY, "collapse_id": "x" * 65},
        "UnknownTemplate": {"device_token": NOBODY, "payload": None, "template": "none"},
        "MissingParameter": {"device_token": NOBODY, "payload": None, "template": "hello", "parameters": '{"title": "x"}'},
        "BadParameters": {"device_token": NOBODY, "payload": None, "template": "hello", "parameters": "name"},
        "NoLanguage": {"device_token": NOBODY, "payload": None, "template": "hallo"},
        "NoDevice": {"user_name": "nobody"}, "BadUserName": {"device_token": NOBODY, "user_name": "somebody"},
        "BadEnvironment": {"device_token": NOBODY, "environment": "staging"},
    }
    queue.run("INSERT INTO push_templates (name, payload) VALUES ('hello', '{\"aps\":{\"alert\":\"{{title}} {{ name }}\"}}')")
    queue.run("INSERT INTO push_templates (name, language, payload) VALUES ('hallo', 'de', '{}')")
    # Each row's sentence names its column; or the template, the parameter, the user.
    named = {
        "UnknownTemplate": '"none"', "MissingParameter": '`name`, which the template "hello" names', "NoLanguage": '"hallo"',
        "NoDevice": f'"nobody" for {TOPIC}', "BadUserName": "`device_token`",
    }
    ids = {reason: queue.insert(**columns) for reason, columns in bad.items()}
    if "sqlite" in queue.url:
        ids["BadPriority"] = queue.insert(device_token=NOBODY, priority=b"\xff\x00" * 1000)
        ids["BadDeviceToken"] = queue.insert(device_token=b"\xff" * 3_000_000)
        ids["BadPayload"] = queue.insert(device_token=NOBODY, payload=b"\xff\xfe")
        ids["BadSendAfter"] = queue.insert(device_token=NOBODY, send_after="soon")
    huge = queue.insert(device_token=NOBODY, payload="x" * 30_000_000)
    good = queue.insert(device_token=device.token, payload=text())
    assert queue.done(good)["status"] == "sent"
    for reason, id in ids.items():
        row = queue.done(id)
        assert (row["status"], row["reason"], row["time_sent"]) == ("refused", reason, None)
        assert named.get(reason, "`") in row["detail"]
    assert queue.done(huge)["status"] == "refused"
    device.next()


def test_a_refusal_is_recorded_unchanged(relay, queue, parties):
    row = queue.done(queue.insert(device_token=NOBODY))
    assert (row["status"], row["reason"]) == ("refused", "BadDeviceToken")
    row = queue.done(queue.insert(device_token=parties.other_token))
    assert (row["status"], row["reason"]) == ("refused", "DeviceTokenNotForTopic")
    assert queue.run("SELECT * FROM devices WHERE dead_at IS NOT NULL") == []


def test_a_dead_token_is_marked_and_revived(relay, queue, parties):
    row = queue.done(queue.insert(device_token=parties.dead_token))
    assert (row["status"], row["reason"]) == ("refused", "Unregistered")
    (dead,) = eventually(lambda: queue.run("SELECT * FROM devices WHERE dead_at IS NOT NULL"))
    assert dead["device_token"] == parties.dead_token and dead["evidence"].startswith("410 Unregistered")
    # It is not sent to again: no service is asked.
    again = queue.done(queue.insert(device_token=parties.dead_token.upper()))
    assert (again["status"], again["reason"]) == ("refused", "Unregistered")
    assert relay.command("status")["dead_devices"] == 1
    assert relay.command("revive", parties.dead_token) == {"changed": 1, "breakers": []}
    assert relay.command("revive", parties.dead_token, "ab" * 32) == {"changed": 0, "breakers": [], "notes": [
        f"the token {parties.dead_token[:8]}… is not marked dead", "the queue does not know the token abababab…",
    ]}
    assert relay.command("status")["dead_devices"] == 0
    # Registered since: the service's word is older.
    queue.run("UPDATE devices SET registered_at = '2099-01-01 00:00:00'")
    queue.done(queue.insert(device_token=parties.dead_token))
    assert relay.command("status")["dead_devices"] == 0


def test_many_tokens_and_a_user_and_a_template(relay, queue, device):
    queue.run("INSERT INTO push_templates (name, payload) VALUES ('hi', ?)", json.dumps({"aps": {"alert": "{{who}} wrote"}}))
    queue.run(
        "INSERT INTO push_templates (name, language, payload) VALUES ('hi', 'de', ?)",
        json.dumps({"aps": {"alert": "{{who}} schrieb", "badge": "{{n}}"}}),
    )
    queue.run(
        "INSERT INTO devices (device_token, topic, user_name, languages) VALUES (?, ?, 'ann', 'de-CH,en')", device.token, TOPIC
    )
    parameters = json.dumps({"who": "Bea", "n": 3})
    row = queue.done(queue.insert(user_name="ann", payload=None, template="hi", parameters=parameters))
    assert row["status"] == "sent" and row["time_sent"]
    assert device.next().json == {"aps": {"alert": "Bea schrieb", "badge": 3}}
    many = queue.done(queue.insert(device_token=json.dumps([device.token, NOBODY]), payload=text()))
    assert (many["status"], many["reason"], many["detail"]) == ("sent", "SentInPart", "sent to 1 of 2")
    outcomes = queue.run("SELECT status, reason, detail FROM push_outcomes WHERE push_id = ?", many["id"])
    # The service's own reason has no sentence of the relay's.
    outcomes = sorted((row["status"], row["reason"], row["detail"]) for row in outcomes)
    assert outcomes == [("refused", "BadDeviceToken", None), ("sent", None, None)]
    incomplete = queue.done(queue.insert(user_name="ann", payload=None, template="hi", parameters='{"who": "Bea"}'))
    assert (incomplete["status"], incomplete["reason"]) == ("refused", "MissingParameter") and "lacks `n`" in incomplete["detail"]
    device.next()


def test_waiting_rows_are_sent_by_a_new_relay(shared, queue, start, device):
    start("--topic", TOPIC, *sending(shared)).stop()
    ids = [queue.insert(device_token=device.token, payload=text()) for _ in range(20)]
    relay = start("--topic", TOPIC, *sending(shared))
    assert {row["status"] for row in queue.done(*ids)} == {"sent"}
    assert relay.stop() == 0
    for _ in ids:
        device.next()


def test_a_relay_without_an_authority_says_so(shared, queue, start):
    """In the row, while it waits, and in the health."""
    options = [option for option in sending(shared) if option not in ("--ca", shared.ca)]
    relay = start("--topic", TOPIC, *options)
    id = queue.insert(device_token=NOBODY)
    row = eventually(lambda: (row := queue.row(id))["reason"] == "Untrusted" and row, timeout=PATIENCE, what="the reason")
    words = "is not signed by an authority that is trusted here: give the service's ca.pem with `ca`"
    assert row["status"] == "queued" and words in row["detail"]
    eventually(lambda: any(words in note for note in json.loads(relay.get("/health")[1])["notes"]), what="the note")
    waiting = re.compile(r"^  1: (Untrusted|Unreachable) \(the relay ", re.M)
    eventually(lambda: waiting.search(herald("relay", "status", "--database", queue.url).stdout), what="why the row waits")


def test_a_row_without_a_credential_fails_and_can_be_retried(shared, queue, start, device, tmp_path):
    certificate = shared.provider_certificate()
    config = tmp_path / "relay.yaml"
    app = {
        "name": "herald", "topic": "com.example.nothing", "certificate": str(certificate), "ca": str(shared.ca),
        "service": f"localhost:{shared.listeners['api']}",
    }
    config.write_text(json.dumps({"apps": [app]}))
    relay = start("--config", config)
    id = queue.insert(device_token=device.token, payload=text())
    row = queue.done(id)
    assert (row["status"], row["reason"]) == ("failed", "NoCredential") and f"{TOPIC} in production" in row["detail"]
    # Another app, without a restart.
    config.write_text(json.dumps({"apps": [app, app | {"topic": TOPIC}]}))
    relay.reload()
    eventually(lambda: [line for line in relay.lines if "apps reloaded" in line])
    assert relay.command("retry", "--reason", "NoCredential") == {"changed": 1}
    assert queue.done(id)["status"] == "sent"
    device.next()
    config.write_text("apps: [{topic: x}]")
    relay.reload()
    eventually(lambda: [line for line in relay.lines if "not reloaded" in line])
    assert queue.done(queue.insert(device_token=device.token, payload=text()))["status"] == "sent"
    device.next()


def test_tokens_of_two_environments_go_to_their_own_service(shared, fresh, queue, start, tmp_path):
    sandbox = fresh("--environment", "sandbox").start()
    there, here = listening_device(sandbox), listening_device(shared)
    apps = [
        {
            "name": name, "topic": TOPIC, "certificate": str(service.provider_certificate()), "ca": str(service.ca),
            "service": f"localhost:{service.listeners['api']}", "environment": environment,
        }
        for name, service, environment in (("shared", shared, "production"), ("sandbox", sandbox, "sandbox"))
    ]
    config = tmp_path / "relay.yaml"
    config.write_text(json.dumps({"apps": apps}))
    start("--config", config)
    queue.run(
        "INSERT INTO devices (device_token, topic, environment) VALUES (?, ?, 'sandbox')", there.token, TOPIC
    )
    rows = queue.done(
        queue.insert(device_token=here.token, payload=text()), queue.insert(device_token=there.token, payload=text()),
        queue.insert(device_token=here.token, payload=text(), environment="sandbox"),
    )
    assert [(row["status"], row["reason"]) for row in rows] == [("sent", None), ("sent", None), ("refused", "BadDeviceToken")]
    here.next(), there.next()
    here.stop(), there.stop()


def test_the_feedback_service_is_read(fresh, queue, start):
    service = fresh().start()
    gone, there = away_device(service), away_device(service)
    dead_app(gone)
    start(
        "--topic", TOPIC, "--certificate", service.provider_certificate(), "--service",
        f"localhost:{service.listeners['api']}", "--ca", service.ca, "--feedback", f"localhost:{service.listeners['feedback']}",
        "--feedback-every", "1s",
    )
    (dead,) = eventually(lambda: queue.run("SELECT device_token, evidence FROM devices WHERE dead_at IS NOT NULL"))
    assert dead["device_token"] == gone.token and dead["evidence"].startswith("feedback of localhost:")
    # The relay refuses it without a request.
    row = queue.done(queue.insert(device_token=gone.token))
    assert (row["status"], row["reason"], row["attempts"]) == ("refused", "Unregistered", 0)
    assert queue.done(queue.insert(device_token=there.token))["status"] == "sent"


@pytest.mark.slow
def test_an_unreachable_service_is_tried_until_it_returns(fresh, queue, start):
    service = fresh("--api-port", str(free_port())).start()
    device = listening_device(service)
    relay = start("--topic", TOPIC, *sending(service), "--unhealthy-after", "1s")
    device.stop()
    service.stop()
    ids = [queue.insert(device_token=device.token, payload=text()) for _ in range(5)]
    health = eventually(lambda: (answer := relay.get("/health"))[0] == 503 and answer, timeout=PATIENCE)
    assert "oldest unsent row" in json.loads(health[1])["problems"][0]
    assert {queue.row(id)["status"] for id in ids} == {"queued"}
    service.start()
    assert {row["status"] for row in queue.done(*ids, timeout=PATIENCE)} == {"sent"}
    eventually(lambda: relay.get("/health")[0] == 200, timeout=PATIENCE)


def test_status_purge_and_metrics(relay, queue, device):
    ids = [queue.insert(device_token=device.token, payload=text()), queue.insert(device_token=NOBODY)]
    queue.done(*ids)
    status = relay.command("status")
    assert (status["rows"]["sent"], status["rows"]["refused"], status["claims"]) == (1, 1, [])
    eventually(lambda: relay.metric('herald_relay_rows_total{status="sent"}') == 1)
    eventually(lambda: relay.metric("herald_relay_oldest_unsent_seconds") == 0)
    eventually(lambda: relay.metric("herald_relay_rows_in_flight") == 0)
    assert relay.command("retry", ids[0], ids[0] + 99) == {
        "changed": 0, "notes": [f"there is no row {ids[0] + 99}", f"row {ids[0]} is sent: add --status sent"],
    }
    queue.run("UPDATE push_queue SET time_queued = ? WHERE id = ?", "2026-01-02 03:04:05", ids[1])
    moment = "2026-01-02T03:04:05.000Z"
    assert relay.command("purge", "--status", "refused", "--dry-run") == {
        "changed": 0, "matched": 1, "oldest": moment, "newest": moment,
    }
    assert relay.command("purge", "--older-than", "30d") == {
        "changed": 1, "matched": 1, "oldest": moment, "newest": moment,
    }
    assert relay.command("purge", "--older-than", "1h") == {"changed": 0, "matched": 0}
    # Seven days or seven seconds?
    for name in ("purge", "retry"):
        result = herald("relay", name, "--database", queue.url, "--status", "sent", "--older-than", "7", check=False)
        assert result.returncode == 64 and "needs a unit, like 7d" in result.stderr
    assert [row["id"] for row in queue.run("SELECT id FROM push_queue")] == ids[:1]
    result = herald("relay", "purge", "--database", queue.url, "--status", "sent", "--dry-run")
    assert result.stdout.startswith("1 rows would be deleted, queued from 20")
    device.next()


def test_the_schema_can_be_made_by_hand(queue, start, shared, device):
    sql = herald("relay", "schema", "--database", queue.url).stdout
    if "postgresql" in queue.url:
        queue.run(sql)
    else:
        connection = queue.connect()
        connection.executescript(sql)
        connection.close()
    id = queue.insert(device_token=device.token, payload=text())
    start("--topic", TOPIC, *sending(shared))
    assert queue.done(id)["status"] == "sent"
    device.next()


@pytest.mark.parametrize(
    "command", [["status"], ["retry", "--reason", "x"], ["purge", "--older-than", "7d"], ["revive", "--all"]], ids=" ".join
)
def test_a_missing_queue_is_not_created(queue, command):
    result = herald("relay", *command, "--database", queue.url, check=False)
    assert "there is no queue at" in one_line(result)
    if "postgresql" in queue.url:
        assert queue.run("SELECT to_regclass('push_queue') AS name") == [{"name": None}]
    else:
        assert not queue.path.exists()
        # Nor in a database that is something else's.
        queue.run("CREATE TABLE notes (text TEXT)")
        result = herald("relay", *command, "--database", queue.url, check=False)
        assert "there is no queue at" in one_line(result)
        assert queue.run("SELECT name FROM sqlite_master") == [{"name": "notes"}]


def test_an_applications_own_database(queue, start, shared, device):
    """The outbox beside the application's tables, one of which has the name of one of the relay's."""
    queue.run("CREATE TABLE devices (id INTEGER, owner TEXT)")
    queue.run("CREATE TABLE push_queue (id INTEGER, message TEXT)")
    if "sqlite" in queue.url:
        queue.run("PRAGMA journal_mode = WAL")
        before = queue.path.read_bytes()
    options = ["--topic", TOPIC, *sending(shared)]
    more = ["--api-token", queue.path.parent / "api.token"] if "sqlite" in queue.url else []
    result = herald("relay", "run", "--database", queue.url, "--relay-port", "0", *options, *more, check=False)
    line = one_line(result)
    if "sqlite" in queue.url:
        assert queue.path.read_bytes() == before, "a start that fails changes nothing"
        left = {path.name for path in queue.path.parent.iterdir()}
        assert not left & {f"{queue.path.name}-relay", "api.token"}, "nor does it leave anything"
    assert "the table push_queue has other columns than the relay's" in line
    (hint,) = re.findall("`(herald relay schema [^`]*)`", line)[:1]
    sql = herald(*hint.split()[1:], "--database", queue.url).stdout
    if "postgresql" in queue.url:
        queue.run(sql)
    else:
        connection = queue.connect()
        connection.executescript(sql)
        connection.close()
    prefix = ["--table-prefix", "herald_"]
    relay = start(*options, *prefix)
    values = (device.token, TOPIC, text())
    sql = "INSERT INTO herald_push_queue (device_token, topic, payload) VALUES (?, ?, ?) RETURNING id"
    (row,) = queue.run(sql, *values)
    look = "SELECT status FROM herald_push_queue WHERE id = ?"
    eventually(lambda: queue.run(look, row["id"]) == [{"status": "sent"}], what="the row")
    device.next()
    assert relay.command("status", *prefix)["rows"] == {"sent": 1}
    assert relay.command("retry", "--status", "sent", *prefix) == {"changed": 1}
    eventually(lambda: queue.run(look, row["id"]) == [{"status": "sent"}], what="the row")
    device.next()
    assert relay.command("revive", "--all", *prefix) == {"changed": 0, "breakers": []}
    assert relay.command("purge", "--status", "sent", *prefix)["changed"] == 1
    assert queue.run("SELECT * FROM devices") == queue.run("SELECT * FROM push_queue") == []
    result = herald("relay", "status", "--database", queue.url, "--table-prefix", "other_", check=False)
    assert "there is no queue at" in one_line(result) and "other_" in one_line(result)
    result = herald("relay", "status", "--database", queue.url, "--table-prefix", "Herald-", check=False)
    assert "`table-prefix` must have at most 32 lower-case letters" in one_line(result)


class TestSQLite:
    """Cases of SQLite files."""

    def test_a_missing_folder_is_reported_with_the_remedy(self, tmp_path, shared):
        result = herald(
            "relay", "run", "--database", f"sqlite://{tmp_path}/chat/queue.db", *sending(shared), check=False
        )
        assert f"the folder {tmp_path}/chat of the queue does not exist: make it with `mkdir -p`" in one_line(result)
        assert not list(tmp_path.iterdir())

    @pytest.fixture
    def queue(self, tmp_path):
        return SQLiteQueue(tmp_path / "queue.db")

    @pytest.mark.parametrize("what", ["credential", "token"])
    def test_a_refused_start_leaves_no_file(self, tmp_path, shared, what):
        folder = tmp_path / "queue"
        folder.mkdir()
        (tmp_path / "wrong").touch(mode=0o600)
        wrong = ["--certificate", tmp_path / "wrong"] if what == "credential" else ["--api-token", tmp_path / "wrong"]
        one_line(herald("relay", "run", "--database", f"sqlite://{folder}/q.db", *sending(shared), *wrong, check=False))
        assert list(folder.iterdir()) == []

    def test_the_journal_mode_is_the_applications(self, queue, start, shared, device):
        application = queue.connect()
        application.execute("PRAGMA journal_mode = WAL")
        application.execute("CREATE TABLE notes (text TEXT)")
        relay = start("--topic", TOPIC, *sending(shared))
        for _ in range(3):
            assert queue.done(queue.insert(device_token=device.token, payload=text()))["status"] == "sent"
            assert queue.run("PRAGMA journal_mode")[0]["journal_mode"] == "wal"
            device.next()
        assert relay.stop() == 0
        # By now all that it said has been read.
        (line,) = [line for line in relay.lines if "WAL mode" in line] or [None]
        assert line is None and sqlite3.sqlite_version_info >= (3, 51, 3) or "can damage" in line
        application.close()

    def test_a_change_to_wal_is_followed(self, queue, relay, device):
        assert queue.run("PRAGMA journal_mode")[0]["journal_mode"] == "delete"
        # SQLite does not wait for a lock when it changes the mode, and the relay may just read.
        eventually(lambda: self.changed_to_wal(queue), what="the change to WAL")
        assert queue.done(queue.insert(device_token=device.token, payload=text()))["status"] == "sent"
        assert queue.run("PRAGMA journal_mode")[0]["journal_mode"] == "wal"
        device.next()
        assert relay.stop() == 0

    def test_the_files_of_a_queue_are_the_relays_alone(self, queue, relay):
        queue.run("INSERT INTO push_templates (name, payload) VALUES ('hi', '{}')")
        assert {os.stat(path).st_mode & 0o777 for path in queue.path.parent.glob("queue.db*")} == {0o600}
        assert not [line for line in relay.lines if "every user of this machine" in line]
        relay.stop()
        os.chmod(queue.path, 0o644)
        relay.start()
        eventually(lambda: any(f"chmod o= {queue.path}" in line for line in relay.lines), what="the advice")

    def test_times_in_any_form_and_with_any_offset(self, queue, relay, device):
        hour = datetime.timedelta(hours=1)
        now = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
        forms = [datetime.datetime.isoformat, lambda time: time.strftime("%Y-%m-%d %H:%M:%S%z"), datetime.datetime.timestamp]
        for form in forms:
            due = queue.insert(device_token=device.token, payload=text(), send_after=form(now - hour), give_up_at=form(now + hour))
            assert queue.done(due)["status"] == "sent"
            device.next()
            assert queue.done(queue.insert(device_token=NOBODY, give_up_at=form(now - hour)))["status"] == "expired"
        later = [queue.insert(device_token=NOBODY, send_after=form(now + hour)) for form in forms]
        milliseconds = int(now.timestamp() * 1000)
        for column, reason in (
            ("send_after", "BadSendAfter"), ("give_up_at", "BadGiveUpAt"), ("expiration", "BadExpirationDate"),
            ("time_queued", "BadTimeQueued"),
        ):
            row = queue.done(queue.insert(**{"device_token": NOBODY, column: milliseconds}))
            assert (row["status"], row["reason"]) == ("refused", reason)
        assert {queue.row(id)["status"] for id in later} == {"queued"}

    @staticmethod
    def changed_to_wal(queue):
        try:
            return queue.run("PRAGMA journal_mode = WAL")[0]["journal_mode"] == "wal"
        except sqlite3.OperationalError as error:
            assert "locked" in str(error)
            return False

    def test_a_second_relay_on_a_file_is_refused(self, queue, relay, shared):
        result = herald("relay", "run", "--database", queue.url, *sending(shared), check=False)
        assert "another relay uses" in one_line(result)

    def test_a_locked_file_is_waited_for(self, queue, relay, device):
        connection = queue.connect()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "INSERT INTO push_queue (device_token, topic, payload) VALUES (?, ?, ?)", (device.token, TOPIC, PAYLOAD)
        )
        time.sleep(1)  # pace: how long it is locked
        connection.execute("COMMIT")
        connection.close()
        queue.drained()
        device.next()


@pytest.mark.parametrize("database, words", [
    ("sqlite://queue.db", "absolute"), ("mysql://x/y", "must be sqlite"), ("sqlite:///nowhere/at/all/queue.db", "there is no queue at"),
    ("postgresql://herald@127.0.0.1:1/none", "cannot connect"),
])
def test_an_invalid_queue_is_reported_in_one_line(database, words):
    assert words in one_line(herald("relay", "status", "--database", database, check=False))


def test_missing_options_are_wrong_usage(tmp_path):
    assert herald("relay", "run", check=False).returncode == 64
    assert herald("relay", "run", "--database", f"sqlite://{tmp_path}/q.db", check=False).returncode == 64
