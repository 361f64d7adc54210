"""Broadcast channels over the admin API: made, seen by providers, sent to, deleted; who may do it, and what is refused."""

import base64
import json
import urllib.parse

import pytest

import channels
from channels import ATTRIBUTES
from parties import make_parties
from provider import Provider
from service import TOPIC, eventually
from test_console_access import ask, make_token
from test_cluster_nodes import nodes, trio

UNKNOWN = base64.urlsafe_b64encode(bytes(16)).decode()


def request(service, method, path, status, token=None, body=None):
    got, _, answer = ask(service, method, path, token=token or (service.data / "run" / "admin.token").read_text().strip(), body=body)
    assert got == status, answer
    return answer


def make(service, status=201, token=None, **order):
    return request(service, "POST", "/v1/channels", status, token, {"topic": TOPIC, "policy": 1, **order})


def remove(service, id, status=200, token=None):
    return request(service, "DELETE", f"/v1/channels/{urllib.parse.quote(id, safe='')}", status, token)


def send(service, id, status=200, environment="production"):
    order = {
        "to": {"channel": id, "topic": TOPIC}, "environment": environment, "headers": {"apns-push-type": "liveactivity", "apns-expiration": str(channels.soon())},
        "payload": channels.LIVE,
    }
    answer = request(service, "POST", "/v1/send", 200, body=order)
    assert answer["status"] == status, answer
    return answer


def listed(service):
    return {one["id"]: one for one in request(service, "GET", f"/v1/channels?topic={TOPIC}", 200)["items"]}


def test_a_channel_is_made_seen_by_providers_sent_to_and_deleted(fresh):
    service = fresh().start()
    made = [make(service) for _ in range(12)]
    # Each character of base64 comes through a path.
    assert set("".join(one["id"] for one in made)) & set("+/")
    channel = made[0]
    assert {**channel, "id": "", "created": ""} == {
        "id": "", "topic": TOPIC, "environment": "production", "policy": 1, "created": "", "subscribers": 0, "published": 0, "delivered": 0, "stored": False,
    }
    assert listed(service)[channel["id"]] == channel
    with Provider(service, key=service.provider_key()) as provider:
        answer = channels.read(provider, channel["id"])
        assert (answer.status, answer.json) == (200, ATTRIBUTES)
        channels.publish(provider, channel["id"])
        send(service, channel["id"])
        eventually(lambda: listed(service)[channel["id"]]["published"] == 2 and listed(service)[channel["id"]]["stored"])
        lines = request(service, "POST", "/v1/journal/search", 200, body={"q": f"topic:{TOPIC} environment:production type:liveactivity"})["items"]
        assert len(lines) == 2
        for one in made:
            assert remove(service, one["id"])["id"] == one["id"]
        channels.assert_refused(channels.read(provider, channel["id"]), 400, "ChannelNotRegistered")
    assert listed(service) == {}
    send(service, channel["id"], 400)
    assert "no channel" in remove(service, channel["id"], 404)["error"]
    service.kill()
    service.start()
    assert listed(service) == {}


def test_what_providers_made_is_deleted_too(fresh):
    service = fresh().start()
    with Provider(service, certificate=service.provider_certificate(TOPIC)) as provider:
        made, own = channels.create(provider), make(service, policy=0)["id"]
        assert set(channels.listing(provider)) == {made, own}
        remove(service, made)
        assert channels.listing(provider) == [own]


def test_a_sender_has_the_sandbox_and_the_audit_has_the_names(fresh):
    service = fresh().start()
    viewer, sender = (make_token(service, role, role) for role in ("viewer", "sender"))
    own, foreign = make(service, token=sender, environment="sandbox"), make(service)
    assert "this needs the role sender" in make(service, 403, viewer, environment="sandbox")["error"]
    assert "in the sandbox only" in make(service, 403, sender)["error"]
    assert "in the sandbox only" in remove(service, foreign["id"], 403, sender)["error"]
    remove(service, own["id"], 403, viewer)
    remove(service, own["id"], 200, sender)
    assert list(listed(service)) == [foreign["id"]]
    lines = request(service, "GET", "/v1/audit?limit=4", 200)["items"]
    assert [(line["who"], line["action"], line["target"], line["status"]) for line in lines] == [
        ("sender", "DELETE /v1/channels/{id}", f"{own['id']} {TOPIC} sandbox", 200), ("viewer", "DELETE /v1/channels/{id}", urllib.parse.quote(own["id"], safe=""), 403),
        ("sender", "DELETE /v1/channels/{id}", f"{foreign['id']} {TOPIC} production", 403), ("sender", "POST /v1/channels", f"{TOPIC} production", 403),
    ]


def test_what_cannot_be_made_or_deleted_says_why(fresh):
    service = fresh("--channel-limit", "1", "--broadcast-apps", TOPIC).start()
    make(service)
    for status, words, order in [
        (409, "channel-limit", {}), (409, "broadcast-apps", {"topic": "com.example.other"}), (400, "without a suffix", {"topic": f"{TOPIC}.voip"}),
        (400, "bundle identifier", {"topic": "a..b"}), (400, "policy must be 0", {"policy": 2}), (400, "environment must be", {"environment": "both"}),
    ]:
        assert words in make(service, status, **order)["error"]
    make(service, environment="sandbox")
    assert "no channel" in remove(service, UNKNOWN, 404)["error"]
    assert "base64" in remove(service, "no base64!", 400)["error"]


@pytest.mark.slow
def test_a_channel_of_one_node_is_one_of_the_others(trio, nodes):
    """Made at one node, sent to at the next, and deleted at the third, without a wait between."""
    first, second, third = nodes
    for _ in range(5):
        id = make(first)["id"]
        send(second, id)
        assert remove(third, id)["id"] == id
        eventually(lambda id=id: id not in listed(first))
    with Provider(first, key=make_parties(first).key) as provider:
        channels.assert_refused(channels.read(provider, id), 400, "ChannelNotRegistered")
