"""The device contract with clients that are not ours: mosquitto_sub, mosquitto_pub and paho-mqtt, in 3.1.1 and 5."""

import contextlib
import queue
import subprocess
import time

import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from mqtt_device import LONG, MAIL
from mqtt_wire import tls_context
from service import PATIENCE, TOPIC, eventually, herald

PAYLOAD = ' {"aps":{"alert":"Grüße 😀 \\u00fc"},\t"n":1.50}\n'.encode()
#: Topic, payload in hex, QoS, RETAIN; then, in 5, message expiry, content type, user properties.
FORMAT = "%t\t%x\t%q\t%r\t%E\t%C\t%P"


# mosquitto.


class Mosquitto:
    """mosquitto_sub and mosquitto_pub with a device's certificate."""

    def __init__(self, device, version):
        self.device = device
        self.service = device.service
        self.version = {5: "mqttv5", 4: "mqttv311"}[version]

    def command(self, program, *options, identifier=None):
        return [
            program, "-h", "localhost", "-p", str(self.service.listeners["device"]), "-V", self.version,
            "--cafile", str(self.service.ca), "--cert", str(self.device.path), "--key", str(self.device.path),
            "-i", self.device.id if identifier is None else identifier, *options,
        ]

    def subscribe(self, *options, filters=(f"apps/{TOPIC}/#",), **named):
        """Starts mosquitto_sub with a session that outlives it."""
        names = [part for name in filters for part in ("-t", name)]
        command = self.command("mosquitto_sub", "-c", "-q", "1", "-F", FORMAT, *names, *options, **named)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def receive(self, count, *options, seconds=PATIENCE, **named):
        """The messages that mosquitto_sub receives, until it has `count` or the time is over."""
        process = self.subscribe("-C", str(count), "-W", str(seconds), *options, **named)
        output, errors = process.communicate(timeout=seconds + 10)
        # 27: the seconds were over; 255: they were over before it was connected.
        assert process.returncode in (0, 27, 255), errors
        return [line.split("\t") for line in output.splitlines()]

    def receive_briefly(self):
        """The messages on a new connection: the token, and those of the next moments."""
        return next(found for seconds in (1, 4, PATIENCE) if (found := self.receive(2, seconds=seconds)))

    def publish(self, topic, payload, *options):
        """mosquitto_pub at QoS 1."""
        command = self.command("mosquitto_pub", "-q", "1", "-t", topic, "-m", payload, *options)
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    def register(self):
        """The token, as a device would get it that then goes away."""
        ((topic, payload, *_),) = self.receive(1)
        assert topic == f"apps/{TOPIC}/token"
        return bytes.fromhex(payload).decode()


@pytest.fixture
def mosquitto(device, version):
    return Mosquitto(device, version)


def notifications(messages):
    return [message for message in messages if message[0] == f"apps/{TOPIC}"]


def test_mosquitto_sub_receives_while_it_is_connected(mosquitto, provider):
    process = mosquitto.subscribe("-C", "2")
    token = bytes.fromhex(process.stdout.readline().split("\t")[1]).decode()
    assert provider.push(token, PAYLOAD).status == 200
    topic, payload, qos, retain, *_ = process.stdout.readline().split("\t")
    assert (topic, bytes.fromhex(payload), qos, retain) == (f"apps/{TOPIC}", PAYLOAD, "1", "0")
    assert process.wait(timeout=PATIENCE) == 0


def test_mosquitto_sub_receives_a_stored_notification_once(mosquitto, provider):
    token = mosquitto.register()
    assert provider.push(token, PAYLOAD).status == 200
    (found,) = notifications(mosquitto.receive(2))
    assert bytes.fromhex(found[1]) == PAYLOAD
    # Acknowledged: the next connection brings the token, and nothing else.
    again = mosquitto.receive_briefly()
    assert [message[0] for message in again] == [f"apps/{TOPIC}/token"]
    assert bytes.fromhex(again[0][1]).decode() == token


def test_mosquitto_sub_gets_the_properties_in_5(device, provider):
    mosquitto = Mosquitto(device, 5)
    token = mosquitto.register()
    expiration = int(time.time()) + 500
    answer = provider.push(
        token, PAYLOAD, push_type="background", priority=5, collapse_id="score", expiration=expiration
    )
    assert answer.status == 200
    (found,) = notifications(mosquitto.receive(2))
    expiry, content_type, properties = found[4:]
    assert expiration - time.time() - 1 <= int(expiry) <= 500
    assert content_type == "application/json"
    assert sorted(properties.lower().split(" ")) == [
        "apns-collapse-id:score", f"apns-id:{answer.id.lower()}", "apns-priority:5", "apns-push-type:background",
    ]


def test_mosquitto_sub_with_another_identifier_is_refused(mosquitto):
    process = mosquitto.subscribe("-W", str(PATIENCE), identifier="somebody-else")
    _, errors = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode not in (0, 27)
    assert "ident" in errors.lower()


def test_mosquitto_sub_reports_the_refused_filter(mosquitto):
    process = mosquitto.subscribe("-W", str(PATIENCE), filters=["foreign/#"])
    _, errors = process.communicate(timeout=2 * PATIENCE)
    assert "denied" in errors.lower() or "not authorized" in errors.lower() or process.returncode not in (0, 27)


def test_mosquitto_sub_removes_the_app_by_unsubscribing(mosquitto, provider):
    token = mosquitto.register()
    # -E: exit once subscribed; -U goes before.
    command = mosquitto.command("mosquitto_sub", "-c", "-U", f"apps/{TOPIC}/#", "-t", f"apps/{MAIL}", "-E")
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert process.returncode == 0, process.stderr
    # It does not wait for the UNSUBACK.
    eventually(lambda: provider.push(token, PAYLOAD).status == 410, what="the removal")


def test_mosquitto_pub_switches_an_app_off_and_on(mosquitto, provider):
    token = mosquitto.register()
    assert mosquitto.publish(f"apps/{TOPIC}/settings", '{"enabled":false}').returncode == 0
    assert provider.push(token, PAYLOAD).status == 200
    assert not notifications(mosquitto.receive(2, seconds=1))
    assert mosquitto.publish(f"apps/{TOPIC}/settings", '{"enabled":true}').returncode == 0
    assert provider.push(token, PAYLOAD).status == 200
    assert len(notifications(mosquitto.receive(2))) == 1


def test_mosquitto_pub_reports_power(mosquitto, provider):
    token = mosquitto.register()
    assert mosquitto.publish("device/power", '{"saving":true}').returncode == 0
    assert provider.push(token, PAYLOAD, priority=5).status == 200
    assert not notifications(mosquitto.receive(2, seconds=1))
    assert mosquitto.publish("device/power", '{"saving":false}').returncode == 0
    assert len(notifications(mosquitto.receive(2))) == 1


def test_mosquitto_pub_presents_the_token(mosquitto):
    token = mosquitto.register()
    assert mosquitto.publish(f"apps/{TOPIC}/token", token).returncode == 0


def test_mosquitto_pub_with_a_forged_token_is_disconnected(mosquitto, provider):
    token = mosquitto.register()
    # It tries again until it is stopped, as it does after every lost connection.
    with contextlib.suppress(subprocess.TimeoutExpired):
        command = mosquitto.command("mosquitto_pub", "-q", "1", "-t", f"apps/{TOPIC}/token", "-m", "5f" * 32, "-d")
        result = subprocess.run(command, capture_output=True, text=True, timeout=3)
        assert result.returncode != 0 or "PUBACK" not in result.stdout
    assert provider.push(token, PAYLOAD).status == 200


def test_mosquitto_pub_cannot_publish_to_another_device(mosquitto, other, provider):
    link = other.connect()
    token = link.register()
    with contextlib.suppress(subprocess.TimeoutExpired):
        command = mosquitto.command("mosquitto_pub", "-q", "1", "-t", f"apps/{TOPIC}", "-m", '{"aps":{}}')
        subprocess.run(command, capture_output=True, timeout=3)
    assert provider.push(token, PAYLOAD).status == 200
    assert link.notification().payload == PAYLOAD


def test_mosquitto_sub_with_a_will_is_served(mosquitto, provider):
    token = mosquitto.register()
    assert provider.push(token, PAYLOAD).status == 200
    will = ("--will-topic", "any/topic", "--will-payload", "gone")
    assert len(notifications(mosquitto.receive(2, *will))) == 1


# paho-mqtt.


class Paho:
    """A paho-mqtt client with a device's certificate; what happens to it comes into queues."""

    def __init__(self, device, version, *, clean=True, identifier=None, manual=False):
        self.device = device
        self.version = version
        protocol = {5: paho.MQTTv5, 4: paho.MQTTv311}[version]
        options = {} if version == 5 else {"clean_session": clean}
        self.clean = clean
        self.manual = manual
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=device.id if identifier is None else identifier,
            protocol=protocol, manual_ack=manual, reconnect_on_failure=False, **options,
        )
        self.client.tls_set_context(tls_context(device.service.ca, device.path))
        self.events = {name: queue.Queue() for name in ("connect", "disconnect", "subscribe", "unsubscribe", "message",
                                                        "publish")}
        self.client.on_connect = lambda _, __, flags, reason, properties: self.put("connect", flags, reason, properties)
        self.client.on_disconnect = lambda _, __, ___, reason, properties: self.put("disconnect", reason, properties)
        self.client.on_subscribe = lambda _, __, number, reasons, properties: self.put("subscribe", number, reasons)
        self.client.on_unsubscribe = lambda _, __, number, reasons, properties: self.put("unsubscribe", number, reasons)
        self.client.on_publish = lambda _, __, number, reason, properties: self.put("publish", reason, properties)
        self.client.on_message = lambda _, __, message: self.put("message", message)

    def put(self, name, *values):
        self.events[name].put(values[0] if len(values) == 1 else values)

    def wait(self, name, timeout=PATIENCE):
        try:
            return self.events[name].get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no {name} within {timeout} s") from None

    def start(self, **properties):
        """Connects; the flags, the reason and the properties of the CONNACK."""
        options = {}
        if self.version == 5:
            block = Properties(PacketTypes.CONNECT)
            for name, value in properties.items():
                setattr(block, name, value)
            options = {"clean_start": self.clean, "properties": block}
        self.client.connect("localhost", self.device.service.listeners["device"], keepalive=60, **options)
        self.client.loop_start()
        return self.wait("connect")

    def subscribe(self, name, qos=1, **properties):
        if self.version == 5:
            block = Properties(PacketTypes.SUBSCRIBE)
            for key, value in properties.items():
                setattr(block, key, value)
            self.client.subscribe(name, options=SubscribeOptions(qos), properties=block)
        else:
            self.client.subscribe(name, qos)
        _, reasons = self.wait("subscribe")
        return [reason.value for reason in reasons]

    def register(self):
        assert self.subscribe(f"apps/{TOPIC}/#") == [1]
        message = self.wait("message")
        if self.manual:
            self.client.ack(message.mid, message.qos)
        assert message.topic == f"apps/{TOPIC}/token"
        return message.payload.decode()

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def phone(device, version):
    """Makes paho clients of one device."""
    made = []

    def make(**options):
        made.append(Paho(device, version, **options))
        return made[-1]

    yield make
    for client in made:
        client.stop()


def test_paho_registers_and_receives(phone, provider):
    client = phone()
    flags, reason, _ = client.start()
    assert not flags.session_present and reason == 0
    token = client.register()
    assert provider.push(token, PAYLOAD).status == 200
    message = client.wait("message")
    assert (message.topic, message.payload, message.qos) == (f"apps/{TOPIC}", PAYLOAD, 1)
    assert not message.retain and not message.dup


def test_paho_resumes_its_session_with_stored_notifications(phone, provider):
    client = phone(clean=False)
    client.start(**({"SessionExpiryInterval": LONG} if client.version == 5 else {}))
    token = client.register()
    client.stop()
    assert provider.push(token, PAYLOAD).status == 200
    client = phone(clean=False)
    flags, _, _ = client.start(**({"SessionExpiryInterval": LONG} if client.version == 5 else {}))
    assert flags.session_present
    # Without another SUBSCRIBE.
    assert client.wait("message").payload == PAYLOAD
    assert client.events["message"].empty()


def test_paho_gets_an_unacknowledged_notification_again(phone, provider):
    client = phone(manual=True)
    client.start()
    assert provider.push(client.register(), PAYLOAD).status == 200
    assert client.wait("message").payload == PAYLOAD
    client.stop()
    client = phone(manual=True)
    client.start()
    client.register()
    message = client.wait("message")
    assert message.payload == PAYLOAD
    client.client.ack(message.mid, message.qos)
    client.stop()
    client = phone()
    client.start()
    client.register()
    with pytest.raises(AssertionError):
        client.wait("message", timeout=0.5)


def test_paho_unsubscribes_and_the_app_is_removed(phone, provider):
    client = phone()
    client.start()
    token, before = client.register(), time.time()
    client.client.unsubscribe(f"apps/{TOPIC}/#")
    client.wait("unsubscribe")
    answer = provider.push(token, PAYLOAD)
    assert (answer.status, answer.reason) == (410, "Unregistered")
    assert before - 1 < answer.timestamp / 1000 < time.time() + 1


def test_paho_cannot_subscribe_to_a_filter_of_another_device(phone):
    client = phone()
    client.start()
    assert client.subscribe("foreign/topic")[0] >= 0x80


def test_paho_is_disconnected_with_session_taken_over(phone):
    old, new = phone(), phone()
    old.start()
    new.start()
    reason, _ = old.wait("disconnect")
    assert reason.is_failure
    if old.version == 5:
        assert reason.value == 0x8E


def test_paho_with_an_empty_identifier_gets_the_devices(phone, device):
    client = phone(identifier="")
    _, reason, properties = client.start()
    assert reason == 0
    if client.version == 5:
        assert properties.AssignedClientIdentifier == device.id


def test_paho_publishes_settings_and_presents_its_token(phone, provider):
    client = phone()
    client.start()
    token = client.register()
    for topic, payload in (("settings", '{"enabled":false}'), ("token", token)):
        client.client.publish(f"apps/{TOPIC}/{topic}", payload, qos=1)
        reason, _ = client.wait("publish")
        assert reason == 0
    assert provider.push(token, PAYLOAD).status == 200
    with pytest.raises(AssertionError):
        client.wait("message", timeout=0.5)


@pytest.fixture
def five(device):
    """A paho client of MQTT 5, with a session that outlives it."""
    client = Paho(device, 5, clean=False)
    yield client
    client.stop()


def test_paho_gets_the_services_limits_in_5(five):
    _, _, properties = five.start(SessionExpiryInterval=LONG)
    assert properties.MaximumQoS == 1
    assert properties.RetainAvailable == 0
    assert properties.SharedSubscriptionAvailable == 0
    assert properties.SubscriptionIdentifierAvailable == 0


def test_paho_gets_the_properties_in_5(five, provider):
    five.start(SessionExpiryInterval=LONG)
    answer = provider.push(five.register(), PAYLOAD, priority=5, push_type="background", collapse_id="score")
    message = five.wait("message")
    assert {name: value.lower() for name, value in message.properties.UserProperty} == {
        "apns-id": answer.id.lower(), "apns-priority": "5", "apns-push-type": "background", "apns-collapse-id": "score",
    }
    assert message.properties.ContentType == "application/json"
    assert 0 < message.properties.MessageExpiryInterval <= 30 * 86_400


def test_paho_presents_its_token_on_subscribe_in_5(five):
    five.start()
    token = five.register()
    assert five.subscribe(f"apps/{TOPIC}/#", UserProperty=("token", token)) == [1]
    assert five.wait("message").payload.decode() == token


def test_paho_with_a_forged_token_on_subscribe_is_disconnected_in_5(five):
    five.start()
    five.client.subscribe(
        f"apps/{TOPIC}/#", options=SubscribeOptions(1), properties=_user_property("token", "5f" * 32)
    )
    reason, _ = five.wait("disconnect")
    assert reason.value == 0x87


@pytest.mark.parametrize(("order", "code"), [
    (["device", "disconnect"], 0x98), (["device", "disconnect", "--stay-away"], 0x89), (["device", "revoke"], 0x87),
])
def test_paho_hears_why_an_operator_ends_its_connection_in_5(five, device, order, code):
    five.start()
    herald(*order, device.id, "--data", device.service.data)
    reason, properties = five.wait("disconnect")
    assert reason.value == code
    assert properties.ReasonString


@pytest.mark.parametrize(("topic", "payload", "words"), [
    (f"apps/{TOPIC}/settings", b'{"enabled":"no"}', 'enabled is neither true nor false: send {"enabled":true} or'),
    ("device/power", b"saving", 'the payload is not a JSON object, or has a member twice: send {"saving":true} or'),
    ("device/battery", b"{}", "a device may publish to apps/<topic>/settings"),
])
def test_paho_hears_what_is_wrong_with_its_payload_in_5(five, topic, payload, words):
    five.start()
    five.client.publish(topic, payload, qos=1)
    reason, properties = five.wait("publish")
    assert reason.is_failure
    assert properties.ReasonString.startswith(words)


def _user_property(name, value):
    block = Properties(PacketTypes.SUBSCRIBE)
    block.UserProperty = (name, value)
    return block


def test_paho_with_a_receive_maximum_and_a_maximum_packet_size_in_5(five, provider):
    five.start(SessionExpiryInterval=LONG, ReceiveMaximum=1, MaximumPacketSize=600)
    token = five.register()
    # From then on they go straight to this connection: before, one that is stored would replace the one before it.
    assert provider.push(token, PAYLOAD).status == 200
    assert five.wait("message").payload == PAYLOAD
    for number in range(5):
        assert provider.push(token, {"n": number}).status == 200
    assert provider.push(token, {"fill": "x" * 600}).status == 200
    assert provider.push(token, b'{"last":1}').status == 200
    found = [five.wait("message").payload for _ in range(6)]
    assert found == [*(b'{"n":%d}' % number for number in range(5)), b'{"last":1}']
