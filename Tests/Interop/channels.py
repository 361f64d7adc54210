"""Requests for broadcast channels, and their topics."""

import json
import time

from parties import LOWER_UUID
from service import TOPIC

LIVE = {"aps": {"event": "update", "timestamp": 1, "content-state": {"score": 1}}}
ATTRIBUTES = {"message-storage-policy": 1, "push-type": "LiveActivity"}
#: Header fields of a broadcast that is accepted.
FIELDS = {"push_type": "liveactivity", "priority": 10, "expiration": 0}


def call(provider, method, path, body=None, **fields):
    """One request, without the fields that only notifications have."""
    fields.setdefault("topic", None)
    return provider.answer(provider.send(None, body, method=method, path=path, **fields))


def create(provider, policy=1, bundle=TOPIC, **fields):
    """Makes a channel and returns its identifier."""
    answer = call(provider, "POST", f"/1/apps/{bundle}/channels", {**ATTRIBUTES, "message-storage-policy": policy}, **fields)
    assert (answer.status, answer.body) == (201, b""), answer
    return answer.header("apns-channel-id")


def read(provider, channel, bundle=TOPIC, **fields):
    return call(provider, "GET", f"/1/apps/{bundle}/channels", apns_channel_id=channel, **fields)


def delete(provider, channel, bundle=TOPIC, **fields):
    return call(provider, "DELETE", f"/1/apps/{bundle}/channels", apns_channel_id=channel, **fields)


def listing(provider, bundle=TOPIC, **fields):
    answer = call(provider, "GET", f"/1/apps/{bundle}/all-channels", **fields)
    assert answer.status == 200, answer
    return answer.json["channels"]


def send(provider, channel, payload=LIVE, bundle=TOPIC, **fields):
    """Sends a broadcast; fields that are None are left out."""
    fields = {**FIELDS, "apns_channel_id": channel, **fields}
    return call(provider, "POST", f"/4/broadcasts/apps/{bundle}", payload, **fields)


def publish(provider, channel, payload=LIVE, bundle=TOPIC, **fields):
    """Sends a broadcast that is to be accepted; returns its apns-unique-id."""
    answer = send(provider, channel, payload, bundle, **fields)
    assert (answer.status, answer.body) == (200, b""), answer
    return answer.header("apns-unique-id")


def soon(seconds=3600):
    return int(time.time()) + seconds


def filter_of(channel, bundle=TOPIC):
    """The topic of a channel: base64 in the alphabet that has no separator and no wildcard in it."""
    return f"channels/{bundle}/{channel.replace('/', '_').replace('+', '-')}"


def assert_refused(answer, status, reason, request_id=None):
    """A refusal as APNs gives it ("Handling error responses from APNs"), to the byte."""
    assert (answer.status, answer.body) == (status, b'{"reason":"%s"}' % reason.encode())
    assert answer.header("content-type") == "application/json"
    assert_request_id(answer, request_id)
    assert answer.header("apns-unique-id") is None and answer.header("apns-channel-id") is None
    assert answer.frames == [(len(answer.body), True)]


def assert_request_id(answer, request_id=None):
    found = answer.header("apns-request-id")
    assert found == request_id if request_id else LOWER_UUID.fullmatch(found)
    assert answer.id is None


def assert_accepted(answer, request_id=None):
    assert (answer.status, answer.body) == (200, b"") and answer.headers_only
    assert_request_id(answer, request_id)
    assert LOWER_UUID.fullmatch(answer.header("apns-unique-id"))


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()
