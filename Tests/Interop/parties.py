"""Providers and devices of the shared service that several files of tests use, made once."""

import dataclasses
import json
import pathlib
import re
import threading
import time
import urllib.request
import uuid

import paho.mqtt.client as mqtt
import pytest

from provider import Provider, away_device, tls_context
from service import PATIENCE, TOPIC

OTHER = "com.example.other"
STRANGERS = "com.stranger.app"
LOWER_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclasses.dataclass
class Parties:
    """The providers, devices and credentials on the shared service."""

    service: object
    #: A certificate for TOPIC alone, and one for TOPIC, its voice calls, and OTHER.
    certificate: pathlib.Path
    certificate_of_many: pathlib.Path
    #: Keys, as (path, key identifier, team): of the whole team; of OTHER alone; of the sandbox; of another team.
    key: tuple
    key_for_other: tuple
    key_for_sandbox: tuple
    key_of_strangers: tuple
    #: The tokens of a device that is away, for TOPIC and for OTHER.
    token: str
    other_token: str
    #: The token of a device that removed TOPIC between the two moments (milliseconds).
    dead_token: str
    died: tuple

    def provider(self, kind="certificate", **options):
        """A new connection, by `certificate` or by `key`."""
        credential = {"certificate": self.certificate} if kind == "certificate" else {"key": self.key}
        return Provider(self.service, **credential, **options)


def make_parties(service):
    device = away_device(service, TOPIC, OTHER)
    gone = away_device(service)
    return Parties(
        service=service,
        certificate=service.provider_certificate(TOPIC),
        certificate_of_many=service.provider_certificate(TOPIC, f"{TOPIC}.voip", OTHER),
        key=service.provider_key(),
        key_for_other=service.provider_key(OTHER),
        key_for_sandbox=service.provider_key(environment="sandbox"),
        key_of_strangers=service.provider_key(STRANGERS, team="STRANGERS1"),
        token=device.tokens[TOPIC],
        other_token=device.tokens[OTHER],
        dead_token=gone.token,
        died=remove_app(gone),
    )


@pytest.fixture(scope="session")
def parties(shared):
    return make_parties(shared)


def remove_app(device, topic=TOPIC):
    """Connects with paho-mqtt and unsubscribes, as a device does when an app is removed.

    Returns the milliseconds before and after.
    """
    done = threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=device.id, protocol=mqtt.MQTTv5)
    client.tls_set_context(tls_context(device.service.ca, device.path, alpn=()))
    client.on_connect = lambda *_: client.unsubscribe(f"apps/{topic}/#")
    client.on_unsubscribe = lambda *_: done.set()
    before = int(time.time() * 1000)
    client.connect("127.0.0.1", device.service.listeners["device"])
    client.loop_start()
    assert done.wait(timeout=PATIENCE), "the device could not unsubscribe"
    after = int(time.time() * 1000)
    client.disconnect()
    client.loop_stop()
    return before, after


def dead_app(device, topic=TOPIC, certificate=None):
    """Removes an app, and sends a notification that finds it gone: from then on its token is on the feedback list.

    Returns the milliseconds before and after that notification.
    """
    remove_app(device, topic)
    with Provider(device.service, certificate or device.service.provider_certificate(topic), topic=topic) as provider:
        before = int(time.time() * 1000)
        assert provider.push(device.tokens[topic], topic=topic).reason == "Unregistered"
        return before, int(time.time() * 1000)


def advance(service, seconds):
    """Moves the clock of a service that was started with `--clock adjustable`."""
    token = (service.data / "run" / "admin.token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.listeners['console']}/v1/clock/advance",
        data=json.dumps({"seconds": seconds}).encode(),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200


def new_id():
    return str(uuid.uuid4())


def assert_accepted(answer, id=None):
    """Asserts a 200 like APNs': headers only, with `apns-id`."""
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers_only and answer.frames == []
    assert answer.id == id if id else LOWER_UUID.fullmatch(answer.id)


def assert_refused(answer, status, reason, id=None):
    """A refusal as APNs gives it ("Handling notification responses from APNs"), to the byte."""
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.header("content-type") == "application/json"
    assert answer.id == id if id else LOWER_UUID.fullmatch(answer.id)
    if status == 410:
        assert re.fullmatch(rb'\{"reason":"%s","timestamp":\d{13}\}' % reason.encode(), answer.body)
    else:
        assert answer.body == b'{"reason":"%s"}' % reason.encode()
    # Several clients take one DATA frame for the whole body, and one reads no more than 1,024 bytes.
    assert answer.frames == [(len(answer.body), True)]
    assert len(answer.body) < 1024
