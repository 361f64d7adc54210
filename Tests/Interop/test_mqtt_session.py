"""MQTT 5.0, sections 3.12 to 3.14, 4.1 and 4.13, and wills. A test is named by the statement that it checks."""

import pytest

import mqtt_packets as mqtt
from mqtt_device import LONG
from mqtt_packets import Kind, Property, Reason, Will
from service import TOPIC

FAULTY = (Reason.MALFORMED, Reason.PROTOCOL_ERROR)


def test_MQTT_3_12_4_1_pingreq_is_answered_by_pingresp(steady):
    link = steady.connect()
    for _ in range(3):
        link.settled()


def test_MQTT_3_12_4_1_each_pingreq_has_its_pingresp(steady):
    link = steady.connect()
    link.send(mqtt.PINGREQ * 200)
    assert {link.read().kind for _ in range(200)} == {Kind.PINGRESP}
    link.quiet(0.1)


def test_MQTT_3_14_0_1_no_disconnect_before_a_connack(steady):
    wire = steady.wire()
    wire.send(mqtt.packet(Kind.CONNECT, b"\0\4MQTT"))
    # `shut` sees to it.
    wire.shut(*FAULTY)


def test_MQTT_3_14_1_1_disconnect_with_other_flags_closes(steady):
    link = steady.connect()
    link.send(mqtt.packet(Kind.DISCONNECT, flags=2))
    link.refused(Reason.MALFORMED)


def test_MQTT_3_14_2_1_disconnect_with_an_unknown_reason_closes(steady):
    link = steady.connect()
    link.send(mqtt.disconnect(reason=0x03))
    assert all(found.reason in FAULTY for found in link.until_closed())


def test_MQTT_3_14_4_1_after_its_disconnect_the_service_sends_nothing(steady):
    link = steady.connect()
    link.send(mqtt.connect(steady.id), mqtt.PINGREQ, mqtt.subscribe(1, ("foreign/topic", 1)))
    # [MQTT-3.14.4-2]: it closes.
    (only,) = link.refused(Reason.PROTOCOL_ERROR)
    assert only.kind == Kind.DISCONNECT


def test_MQTT_3_14_2_2_a_disconnect_of_the_service_has_no_session_expiry_interval(device):
    old = device.stay()
    device.stay()
    assert old.refused(Reason.TAKEN_OVER)[-1].value(Property.SESSION_EXPIRY) is None


@pytest.mark.parametrize("reason", [0x00, 0x04, 0x80, 0x93], ids=hex)
def test_MQTT_3_14_4_2_after_the_clients_disconnect_the_service_closes(steady, reason):
    link = steady.connect()
    link.send(mqtt.disconnect(reason=reason), mqtt.PINGREQ)
    assert link.until_closed() == []


def test_MQTT_section_3_14_2_2_2_an_interval_that_was_zero_cannot_be_raised_at_the_end(steady):
    link = steady.connect(expiry=0)
    link.send(mqtt.disconnect(properties=[(Property.SESSION_EXPIRY, 10)]))
    link.refused(Reason.PROTOCOL_ERROR)


def test_MQTT_section_3_14_2_2_2_the_interval_may_change_at_the_end(device):
    device.connect(expiry=LONG).leave(properties=[(Property.SESSION_EXPIRY, 0)])
    assert not device.stay().connack.session_present


def test_MQTT_4_1_0_2_a_session_ends_when_its_interval_is_over(device, other):
    device.connect(expiry=1).leave()
    other.connect().quiet(1.3)
    assert not device.connect(clean=False).connack.session_present


def test_MQTT_4_1_0_2_a_registration_does_not_end_with_its_session(device, other, provider):
    link = device.connect(expiry=1)
    token = link.register()
    link.leave()
    other.connect().quiet(1.3)
    # The contract: what is registered stays until it is unsubscribed.
    assert provider.push(token).status == 200
    link = device.connect(clean=False)
    assert not link.connack.session_present
    assert link.register() == token
    link.notification()


def test_MQTT_4_13_1_1_a_protocol_error_is_named_before_the_connection_closes(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1))
    assert link.refused(*FAULTY)[-1].kind == Kind.DISCONNECT


# Wills. The contract accepts them, for clients that set them by habit, and publishes none: a device publishes nothing
# that another one receives, so there is nobody who could be subscribed to a will's topic ([MQTT-3.1.2-8]).

ENDS = {
    "connection-lost": lambda link: link.close(),
    "malformed-packet": lambda link: link.send(b"\x00\x00"),
    "disconnect-with-will": lambda link: link.send(mqtt.disconnect(reason=0x04)),
    "disconnect": lambda link: link.send(mqtt.disconnect()),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_MQTT_3_1_2_7_8_10_14_and_3_14_4_3_a_will_is_accepted_and_reaches_nobody(device, other, provider, end):
    watching = other.connect()
    token = watching.register()
    link = device.connect(will=Will(topic=f"apps/{TOPIC}", payload=b"will", qos=1))
    end(link)
    watching.quiet()
    back = device.connect()
    back.register()
    back.quiet()
    assert provider.push(token, b'{"n":1}').status == 200
    assert watching.notification().payload == b'{"n":1}'


def test_MQTT_3_1_2_8_a_will_for_settings_changes_nothing(device, provider):
    link = device.stay()
    token = link.register()
    link.leave()
    device.stay(will=Will(topic=f"apps/{TOPIC}/settings", payload=b'{"enabled":false}', qos=1)).close()
    link = device.stay()
    assert provider.push(token).status == 200
    link.notification()


def test_MQTT_3_1_3_9_a_delayed_will_is_not_sent_either(device, other):
    watching = other.connect()
    watching.register()
    will = Will(topic=f"apps/{TOPIC}", payload=b"will", qos=1, properties=((Property.WILL_DELAY, 1),))
    device.connect(expiry=LONG, will=will).close()
    watching.quiet(1.3)
