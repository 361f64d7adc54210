"""A relay at a service like Apple's, which has no journal: resets after the request (`in-doubt`), and tokens of any length."""

import time

import pytest

from relay import PAYLOAD
from scripted_service import ID, Scripted, accepts, resets
from service import TOPIC, eventually

TOKEN = "0a" * 32
COLLAPSE = "apns-collapse-id"
#: The choice, and the rows that it repeats: one without and one with a collapse identifier.
CHOICES = {"repeat": [None, "dinner"], "repeat-collapsed": ["dinner"], "give-up": []}


def to(service, trust):
    ca, _, client = trust
    return ["--certificate", client, "--service", f"localhost:{service.port}", "--ca", ca, "--topic", TOPIC]


def path(token):
    return f"/3/device/{token}"


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES)
def test_a_connection_that_is_reset_after_the_requests(queue, relay, trust, choice):
    with Scripted(trust[1], [resets(2), accepts]) as service:
        relay.options = list(map(str, to(service, trust)))
        # The first start makes the tables, and has nothing to send.
        relay.start()
        assert relay.stop() == 0
        ids = {collapse: queue.insert(device_token=TOKEN, collapse_id=collapse) for collapse in (None, "dinner")}
        relay.start(*([] if choice == "repeat" else ["--in-doubt", choice]))
        rows = dict(zip(ids, queue.done(*ids.values())))
        for collapse, row in rows.items():
            sent = [fields for fields in service.seen if fields.get(COLLAPSE) == collapse]
            # Each attempt has the identifier of the row.
            assert {fields[ID] for fields in sent} == {row["apns_id"]}
            if collapse in CHOICES[choice]:
                assert len(sent) == 2
                assert (row["status"], row["reason"]) == ("sent", None)
            else:
                assert len(sent) == 1
                assert (row["status"], row["reason"], row["time_sent"]) == ("failed", "Uncertain", None)
        doubtful = 2 - len(CHOICES[choice])
        assert relay.command("status")["in_doubt"] == doubtful
        # Somebody decides to send them again: as new notifications.
        assert relay.command("retry", "--reason", "Uncertain") == {"changed": doubtful}
        for collapse, row in zip(ids, queue.done(*ids.values())):
            assert row["status"] == "sent"
            assert (row["apns_id"] == rows[collapse]["apns_id"]) == (collapse in CHOICES[choice])
        assert relay.command("status")["in_doubt"] == 0


def test_a_killed_relay_that_gives_up_sends_nothing_again(queue, relay, trust):
    def says_nothing(connection):
        while connection.request():
            pass

    with Scripted(trust[1], [says_nothing, accepts]) as service:
        relay.options = [*map(str, to(service, trust)), "--in-doubt", "give-up"]
        relay.start()
        id = queue.insert(device_token=TOKEN)
        eventually(lambda: service.seen)
        relay.kill()
        relay.start()
        row = queue.done(id)
        assert (row["status"], row["reason"]) == ("failed", "Uncertain")
        assert [fields[ID] for fields in service.seen] == [row["apns_id"]]


def test_tokens_of_other_lengths_are_sent_and_can_die(queue, relay, trust, tmp_path):
    tokens = ["0A" * length for length in (1, 54, 100)]
    dead = "0b" * 80

    def serves(connection):
        while request := connection.request():
            if request[1][":path"] == path(dead):
                connection.refuse(*request, 410, reason="Unregistered", timestamp=int(time.time() * 1000))
            else:
                connection.accept(*request)

    with Scripted(trust[1], [serves]) as service:
        relay.options = list(map(str, to(service, trust)))
        relay.start("--api-token", tmp_path / "api.token")
        token = (tmp_path / "api.token").read_text().strip()
        for one in [*tokens, dead]:
            assert relay.ask("PUT", "/v1/devices", {"device_token": one, "topic": TOPIC}, token)[0] == 200
        rows = queue.done(*[queue.insert(device_token=one) for one in tokens])
        assert {row["status"] for row in rows} == {"sent"}
        assert sorted(fields[":path"] for fields in service.seen) == sorted(path(one.lower()) for one in tokens)
        status, _ = relay.ask("POST", "/v1/pushes", {"device_token": [tokens[1], dead], "topic": TOPIC, "payload": PAYLOAD}, token)
        assert status == 201
        queue.drained()
        found = queue.run("SELECT device_token, dead_at FROM devices WHERE dead_at IS NOT NULL")
        assert [row["device_token"] for row in found] == [dead]
        asked = len(service.seen)
        row = queue.done(queue.insert(device_token=dead.upper()))
        assert (row["status"], row["reason"]) == ("refused", "Unregistered")
        # Without a request to the service.
        assert len(service.seen) == asked
        for one in ("0", "0g", "0a" * 101):
            status, answer = relay.ask("PUT", "/v1/devices", {"device_token": one, "topic": TOPIC}, token)
            assert status == 400 and "2 to 200 hexadecimal digits" in answer
            assert queue.done(queue.insert(device_token=one))["reason"] == "BadDeviceToken"
