"""Apps of both environments on one connection: the user property `environment`, with mosquitto and paho-mqtt."""

import queue
import threading

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from mqtt_device import LONG
from mqtt_packets import Property
from parties import assert_accepted, assert_refused, new_id
from provider import Device, Provider, tls_context
from service import PATIENCE, TOPIC

MAIL = "com.example.mail"
SANDBOX = (("environment", "sandbox"),)


@pytest.fixture(scope="module")
def certificate(shared):
    return shared.provider_certificate(TOPIC, MAIL)


def provider(shared, certificate, environment):
    name = "sandbox.localhost" if environment == "sandbox" else "localhost"
    return Provider(shared, certificate, name=name)


@pytest.mark.parametrize("word", ["sandbox", "development"])
def test_mosquitto_registers_an_app_in_the_sandbox(shared, certificate, word):
    with Device(shared).start("-D", "subscribe", "user-property", "environment", word) as device:
        id = new_id()
        with provider(shared, certificate, "production") as production:
            assert_refused(production.push(device.token, id=id), 400, "BadDeviceToken", id)
        with provider(shared, certificate, "sandbox") as sandbox:
            assert_accepted(sandbox.push(device.token, id=id), id)
        assert device.next().id == id


class Paho:
    """A device on paho-mqtt that notes what comes."""

    def __init__(self, service, path, id, expiry=0):
        self.came = queue.Queue()
        self.answers = queue.Queue()
        connected = threading.Event()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=id, protocol=paho.MQTTv5)
        self.client.tls_set_context(tls_context(service.ca, path, alpn=()))
        self.client.on_message = lambda client, data, message: self.came.put((message.topic, message.payload))
        self.client.on_subscribe = lambda *arguments: self.answers.put(arguments[3:])
        self.client.on_unsubscribe = lambda *arguments: self.answers.put(arguments[3:])
        self.client.on_connect = lambda *_: connected.set()
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry
        self.client.connect("localhost", service.listeners["device"], clean_start=expiry == 0, properties=properties)
        self.client.loop_start()
        assert connected.wait(timeout=PATIENCE)

    def subscribe(self, topic, environment=None):
        properties = Properties(PacketTypes.SUBSCRIBE)
        if environment:
            properties.UserProperty = ("environment", environment)
        self.client.subscribe(f"apps/{topic}/#", qos=1, properties=properties)
        codes, properties = self.answers.get(timeout=PATIENCE)
        return codes[0], properties

    def token(self, topic):
        found, payload = self.came.get(timeout=PATIENCE)
        assert found == f"apps/{topic}/token"
        return payload.decode()

    def next(self):
        return self.came.get(timeout=PATIENCE)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


def test_one_connection_has_apps_of_both_environments(shared, certificate):
    path, id = shared.device()
    device = Paho(shared, path, id, expiry=LONG)
    device.subscribe(TOPIC, "sandbox")
    chat = device.token(TOPIC)
    device.subscribe(MAIL)
    mail = device.token(MAIL)
    with provider(shared, certificate, "sandbox") as sandbox, provider(shared, certificate, "production") as production:
        assert sandbox.push(chat, {"n": 1}).status == 200
        assert device.next() == (f"apps/{TOPIC}", b'{"n":1}')
        assert production.push(mail, {"n": 2}, topic=MAIL).status == 200
        assert device.next() == (f"apps/{MAIL}", b'{"n":2}')
        # The session goes on with both, and what came meanwhile comes.
        device.close()
        assert sandbox.push(chat, {"n": 3}).status == 200
        assert production.push(mail, {"n": 4}, topic=MAIL).status == 200
        device = Paho(shared, path, id, expiry=LONG)
        assert {device.next(), device.next()} == {(f"apps/{TOPIC}", b'{"n":3}'), (f"apps/{MAIL}", b'{"n":4}')}
        # Settings apply to the app in the sandbox.
        device.client.publish(f"apps/{TOPIC}/settings", b'{"enabled":false}', qos=1).wait_for_publish(PATIENCE)
        assert sandbox.push(chat, {"n": 5}).status == 200
        device.client.publish(f"apps/{TOPIC}/settings", b'{"enabled":true}', qos=1).wait_for_publish(PATIENCE)
        assert sandbox.push(chat, {"n": 6}).status == 200
        assert device.next() == (f"apps/{TOPIC}", b'{"n":6}')
        device.client.unsubscribe(f"apps/{TOPIC}/#")
        device.answers.get(timeout=PATIENCE)
        assert sandbox.push(chat).status == 410
        assert production.push(mail, topic=MAIL).status == 200
    device.close()


def test_an_unknown_environment_is_refused_with_a_reason(shared):
    path, id = shared.device()
    device = Paho(shared, path, id)
    code, properties = device.subscribe(TOPIC, "staging")
    assert code.value == 0x83
    assert properties.ReasonString == "the user property environment is production, sandbox or development"
    device.close()


def test_after_a_clean_start_the_property_selects_the_registration(shared, certificate, enroll):
    device = enroll(shared)
    link = device.connect()
    link.subscribe(f"apps/{TOPIC}/#", properties=((Property.USER, SANDBOX[0]),))
    token = link.token()
    link.leave()
    with provider(shared, certificate, "sandbox") as sandbox:
        link = device.connect()
        # In production there is none.
        assert link.unsubscribe(f"apps/{TOPIC}/#").reasons == (0x11,)
        assert sandbox.push(token).status == 200
        assert link.unsubscribe(f"apps/{TOPIC}/#", properties=((Property.USER, SANDBOX[0]),)).reasons == (0,)
        assert sandbox.push(token).status == 410
        link.leave()
