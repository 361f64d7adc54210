"""What providers sent: how many requests, when, with which answers, and what a test learns when nothing came."""

import json
import threading
import time

import pytest

from herald_testing import Herald, HeraldError, HeraldTimeout, HeraldUnexpected

TOPIC = "com.example.chat"
BAD = "0" * 64
PATIENCE = 60


def tagged(tag, **drill):
    return {"aps": {"alert": "x"}, "herald": {"tag": tag, **({"drill": drill} if drill else {})}}


def test_a_sender_that_tries_again_is_seen_until_it_succeeds(herald, device):
    token = device.install(TOPIC)
    payload = tagged("again", reason="TooManyRequests", first=2, **{"retry-after": 3})
    sender = threading.Thread(target=lambda: [herald.send(token, TOPIC, payload) for _ in range(3)])
    sender.start()
    found = herald.caught("tag:again", count=3, until="status:200")
    sender.join()
    assert [(each.status, each.retry_after) for each in found] == [(200, None), (429, 3), (429, 3)]
    times = [each.time for each in found]
    assert times == sorted(times, reverse=True)
    assert all(each.answered is not None and each.answered >= each.time for each in found)
    assert len(herald.caught("tag:again", count=3, limit=1)) == 1
    assert device.wait_for(TOPIC)


def test_exactly_so_many_requests_came(herald, device):
    token = device.install(TOPIC)
    herald.send(token, TOPIC, tagged("once"))
    (found,) = herald.caught_exactly(1, "tag:once", quiet=0.1)
    assert found.status == 200 and found.device
    with pytest.raises(HeraldTimeout, match=r"1 of 2 requests were caught within 0\.1 s for tag:once\n.*com\.example\.chat: 200"):
        herald.caught_exactly(2, "tag:once", wait=0.1)
    herald.send(token, TOPIC, tagged("once"))
    with pytest.raises(HeraldUnexpected, match="2 requests were caught for tag:once, and 1 are right"):
        herald.caught_exactly(1, "tag:once")
    with pytest.raises(HeraldUnexpected):
        herald.caught_nothing("tag:once")
    with pytest.raises(ValueError, match="newest 1000"):
        herald.caught_exactly(1000)


def test_nothing_came(herald):
    herald.caught_nothing("tag:never", within=0.05)
    herald.send(BAD, TOPIC, tagged("later"))
    with pytest.raises(HeraldUnexpected, match="400 BadDeviceToken"):
        herald.caught_nothing("tag:later", within=0.05)


def test_a_wait_in_vain_says_what_came_instead(herald):
    herald.send(BAD, TOPIC, tagged("refused"))
    with pytest.raises(HeraldTimeout, match=r"until status:200\n.*400 BadDeviceToken"):
        herald.caught("tag:refused", until="status:200", wait=0.1)
    with pytest.raises(HeraldError, match="'tagg:x' in q is not a term"):
        herald.caught("tagg:x")
    with pytest.raises(HeraldError, match="'stats:200' in until is not a term"):
        herald.caught("tag:x", until="stats:200")


def test_a_refusal_before_the_token_is_looked_at_names_the_device_as_the_journal_does(herald, device):
    token = device.install(TOPIC)
    answer = herald.send(token, "com.example.other", tagged("other"))
    assert answer.status == 400
    (found,) = herald.caught("tag:other")
    (line,) = herald.journal(answer.apns_id)
    assert found.device == line["device"] != ""
    assert (found.apns_id, found.reason) == (answer.apns_id, line["reason"]) and answer.apns_id == answer.apns_id.lower()


def test_who_waits_for_a_notification_learns_of_its_refusal(herald, device):
    token = device.install(TOPIC)
    with pytest.raises(HeraldTimeout, match="no request for it came to the service"):
        device.wait_for(TOPIC, timeout=0.01)
    herald.send(token, TOPIC, {"aps": {}}, priority=5, push_type="liveactivity")
    with pytest.raises(HeraldTimeout, match=r"the newest requests for it:\n.*400 \w+ \("):
        device.wait_for(TOPIC, timeout=0.01)
    with device.offline():
        assert herald.send(token, TOPIC, alert="not now", expiration=0).status == 200
        with pytest.raises(HeraldTimeout, match=r"200 \(discarded "):
            device.wait_for(TOPIC, timeout=0.01)


def test_a_drill_lasts_as_long_as_its_context_though_the_clock_moves(own_herald):
    with own_herald.device() as device:
        token = device.install(TOPIC)
        with own_herald.drill("refuse", "--reason", "InternalServerError"):
            own_herald.advance(600)
            assert own_herald.send(token, TOPIC, alert="?").status == 500
        assert own_herald.send(token, TOPIC, alert="?").status == 200
        with own_herald.drill("refuse", "--reason", "InternalServerError", "--for", "5m"):
            own_herald.advance(600)
            assert own_herald.send(token, TOPIC, alert="?").status == 200


def test_a_drill_is_renewed_and_ends_soon_without_it(monkeypatch, own_herald):
    monkeypatch.setattr("herald_testing.service.RENEWAL", 0.2)
    end = time.monotonic() + PATIENCE

    def left():
        return [drill["seconds_left"] for drill in json.loads(own_herald.run("drill", "list", "--json"))]

    with own_herald.drill("drop") as number:
        (first,) = left()
        while left()[0] <= first:
            assert time.monotonic() < end, "nobody renews it"
    assert left() == []
    own_herald.run("drill", "start", "drop", "--lease", "1s")
    while left():
        assert time.monotonic() < end, "it does not end"
    with pytest.raises(HeraldError, match=f"no drill {number} with a lease is active"):
        own_herald.run("drill", "renew", number)


def test_a_payloads_drill_without_effect_is_told():
    with Herald("--no-payload-drills") as herald, herald.device() as device:
        token = device.install(TOPIC)
        answer = herald.send(token, TOPIC, tagged("vain", reason="Unregistered"))
        assert answer.status == 200 and "herald.drill has no effect" in answer.explanation
        assert "has no effect" in herald.caught("tag:vain")[0].explanation
        assert "drill without effect" in [line["state"] for line in herald.journal(answer.apns_id)]
        assert device.wait_for(TOPIC)
