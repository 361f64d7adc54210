"""MQTT 5.0, sections 1.5 and 2: the encoding of values and packets. A test is named by the statement that it checks.

Everything that the service sends in any test is held against these statements by `mqtt_packets`.
"""

import pytest

import mqtt_packets as mqtt
from mqtt_packets import Kind, Property, Reason, Will
from service import TOPIC

ILL_FORMED = {
    "lone-continuation": b"a\x80b",
    "cut-sequence": b"ab\xe2\x82",
    "overlong": b"\xc0\xaf",
    "surrogate-high": b"\xed\xa0\x80",
    "surrogate-low": b"\xed\xbf\xbf",
    "surrogate-pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond-unicode": b"\xf5\x80\x80\x80",
    "beyond-plane-16": b"\xf4\x90\x80\x80",
}

# The strings of a CONNECT, and those of later packets.
IN_CONNECT = {
    "client-id": lambda identity, value: mqtt.connect(value),
    "will-topic": lambda identity, value: mqtt.connect(identity, will=Will(topic=value)),
    "will-content-type": lambda identity, value: mqtt.connect(
        identity, will=Will(properties=((Property.CONTENT_TYPE, value),))
    ),
    "user-name": lambda identity, value: mqtt.connect(identity, username=value),
    "user-property": lambda identity, value: mqtt.connect(identity, properties=[mqtt.user("name", value)]),
}
AFTER_CONNECT = {
    "topic-name": lambda value: mqtt.publish(value, b"{}", qos=1, packet_id=1),
    "content-type": lambda value: mqtt.publish(
        f"apps/{TOPIC}/settings", b"{}", qos=1, packet_id=1, properties=[(Property.CONTENT_TYPE, value)]
    ),
    "response-topic": lambda value: mqtt.publish(
        f"apps/{TOPIC}/settings", b"{}", qos=1, packet_id=1, properties=[(Property.RESPONSE_TOPIC, value)]
    ),
    "subscribe-filter": lambda value: mqtt.subscribe(1, (value, 1)),
    "unsubscribe-filter": lambda value: mqtt.unsubscribe(1, value),
    "user-property-name": lambda value: mqtt.subscribe(1, (f"apps/{TOPIC}", 1), properties=[mqtt.user(value, "x")]),
    "user-property-value": lambda value: mqtt.unsubscribe(1, f"apps/{TOPIC}", properties=[mqtt.user("x", value)]),
    "reason-of-puback": lambda value: mqtt.puback(1, properties=[(Property.REASON_STRING, value)]),
    "reason-of-disconnect": lambda value: mqtt.disconnect(properties=[(Property.REASON_STRING, value)]),
}


@pytest.mark.parametrize("value", ILL_FORMED.values(), ids=ILL_FORMED)
def test_MQTT_1_5_4_1_and_3_8_3_1_a_topic_filter_that_is_not_utf_8_closes(steady, value):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (value, 1)))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize("build", AFTER_CONNECT.values(), ids=AFTER_CONNECT)
def test_MQTT_1_5_4_1_and_3_10_3_1_a_string_with_a_surrogate_closes(steady, build):
    link = steady.connect()
    link.send(build(ILL_FORMED["surrogate-high"]))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize("build", IN_CONNECT.values(), ids=IN_CONNECT)
def test_MQTT_1_5_4_1_and_3_1_3_4_a_surrogate_in_connect_closes(steady, build):
    wire = steady.wire()
    wire.send(build(steady.id, ILL_FORMED["surrogate-high"]))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize("build", AFTER_CONNECT.values(), ids=AFTER_CONNECT)
def test_MQTT_1_5_4_2_and_4_7_3_2_a_null_character_closes(steady, build):
    link = steady.connect()
    link.send(build(b"a\0b"))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize("build", IN_CONNECT.values(), ids=IN_CONNECT)
def test_MQTT_1_5_4_2_a_null_character_in_connect_closes(steady, build):
    wire = steady.wire()
    wire.send(build(steady.id, b"a\0b"))
    wire.shut(Reason.MALFORMED)


def test_MQTT_1_5_4_3_a_byte_order_mark_is_part_of_a_topic(steady):
    link = steady.connect()
    assert link.subscribe(f"\ufeffapps/{TOPIC}").reasons == (Reason.NOT_AUTHORIZED,)
    assert link.publish(f"\ufeffapps/{TOPIC}/settings", b'{"enabled":true}').reason == Reason.NOT_AUTHORIZED


def test_MQTT_1_5_4_3_a_byte_order_mark_is_part_of_a_client_identifier(steady):
    wire = steady.wire()
    wire.send(mqtt.connect("\ufeff" + steady.id))
    wire.refused_at_connect(Reason.CLIENT_ID)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_MQTT_1_5_5_1_a_remaining_length_of_too_many_bytes_closes(steady, size):
    link = steady.connect()
    link.send(bytes([Kind.PINGREQ << 4]) + mqtt.varint(0, size))
    link.refused(Reason.MALFORMED)


def test_MQTT_1_5_5_1_a_remaining_length_of_five_bytes_closes(steady):
    link = steady.connect()
    link.send(bytes([Kind.PUBLISH << 4]) + b"\xff\xff\xff\xff\x7f")
    link.refused(Reason.MALFORMED)


def test_MQTT_1_5_5_1_a_property_length_of_too_many_bytes_closes(steady):
    link = steady.connect()
    body = mqtt.u16(1) + mqtt.varint(0, 2) + mqtt.text(f"apps/{TOPIC}") + b"\x01"
    link.send(mqtt.packet(Kind.SUBSCRIBE, body, flags=2))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize("pair", [(b"\xed\xa0\x80", b"x"), (b"x", b"\xed\xa0\x80"), (b"a\0", b"x"), (b"x", b"a\0")])
def test_MQTT_1_5_7_1_both_strings_of_a_pair_are_utf_8(steady, pair):
    link = steady.connect()
    link.send(mqtt.unsubscribe(1, f"apps/{TOPIC}", properties=[mqtt.user(*pair)]))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize(
    "data",
    [
        mqtt.packet(Kind.PUBACK, mqtt.u16(1), flags=1),
        mqtt.packet(Kind.PUBREC, mqtt.u16(1), flags=2),
        mqtt.packet(Kind.PUBREL, mqtt.u16(1), flags=0),
        mqtt.packet(Kind.PUBCOMP, mqtt.u16(1), flags=4),
        mqtt.subscribe(1, (f"apps/{TOPIC}", 1), flags=0),
        mqtt.unsubscribe(1, f"apps/{TOPIC}", flags=0),
        mqtt.packet(Kind.PINGREQ, flags=8),
        mqtt.packet(Kind.DISCONNECT, flags=1),
        mqtt.packet(Kind.AUTH, flags=1),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT_2_1_3_1_and_3_6_1_1_wrong_reserved_flags_close(steady, data):
    link = steady.connect()
    link.send(data)
    link.refused(Reason.MALFORMED)


def test_MQTT_2_1_3_1_reserved_flags_of_connect_close(steady):
    wire = steady.wire()
    wire.send(mqtt.packet(Kind.CONNECT, mqtt.connect(steady.id)[2:], flags=1))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize("kind", [0, Kind.CONNACK, Kind.SUBACK, Kind.UNSUBACK, Kind.PINGRESP], ids=str)
def test_MQTT_section_2_1_2_a_packet_that_no_client_sends_closes(steady, kind):
    link = steady.connect()
    link.send(mqtt.packet(kind, mqtt.u16(1) + b"\0\0"))
    link.refused(Reason.PROTOCOL_ERROR, Reason.MALFORMED)


def test_MQTT_2_2_1_2_publish_at_qos_0_has_no_packet_identifier(device, provider):
    link = device.connect()
    token = link.register()
    link.send(mqtt.publish(f"apps/{TOPIC}/settings", b'{"enabled":false}'))
    link.caught_up()
    assert provider.push(token).status == 200
    link.quiet()


@pytest.mark.parametrize(
    "data",
    [
        mqtt.publish(f"apps/{TOPIC}/settings", b"{}", qos=1, packet_id=0),
        mqtt.subscribe(0, (f"apps/{TOPIC}", 1)),
        mqtt.unsubscribe(0, f"apps/{TOPIC}"),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT_2_2_1_3_a_packet_identifier_of_zero_closes(steady, data):
    link = steady.connect()
    link.send(data)
    link.refused(Reason.PROTOCOL_ERROR, Reason.MALFORMED)


@pytest.mark.parametrize("number", [1, 0x1234, 65535])
def test_MQTT_2_2_1_5_and_6_an_answer_has_the_packet_identifier_of_its_request(steady, number):
    link = steady.connect()
    link.send(mqtt.subscribe(number, ("foreign/topic", 1)))
    assert link.expect(Kind.SUBACK).packet_id == number
    link.send(mqtt.unsubscribe(number, "foreign/topic"))
    assert link.expect(Kind.UNSUBACK).packet_id == number
    link.send(mqtt.publish("device/power", b'{"saving":false}', qos=1, packet_id=number))
    assert link.expect(Kind.PUBACK).packet_id == number


def test_MQTT_2_2_2_1_a_missing_property_length_closes(steady):
    link = steady.connect()
    link.send(mqtt.packet(Kind.SUBSCRIBE, mqtt.u16(1), flags=2))
    link.refused(Reason.MALFORMED)


# Section 2.2.2.2: the properties.


@pytest.mark.parametrize(
    "block",
    [
        b"\x02\x7f\x00",
        b"\x05\x0b\x80\x80\x80\x80",
        b"\x01\x26",
        b"\x04\x26\x00\x05a",
        b"\x7f",
        b"\x01\x0b",
    ],
    ids=["unknown", "varint-too-long", "no-value", "value-cut-off", "beyond-the-packet", "no-number"],
)
def test_MQTT_section_2_2_2_2_a_malformed_property_closes(steady, block):
    link = steady.connect()
    link.send(mqtt.packet(Kind.SUBSCRIBE, mqtt.u16(1) + block + mqtt.text(f"apps/{TOPIC}") + b"\x01", flags=2))
    link.refused(Reason.MALFORMED)


@pytest.mark.parametrize(
    "data",
    [
        mqtt.publish("device/power", b"{}", qos=1, packet_id=1, properties=[(Property.SESSION_EXPIRY, 1)]),
        mqtt.subscribe(1, (f"apps/{TOPIC}", 1), properties=[(Property.MESSAGE_EXPIRY, 1)]),
        mqtt.unsubscribe(1, f"apps/{TOPIC}", properties=[(Property.SUBSCRIPTION_ID, 1)]),
        mqtt.puback(1, properties=[(Property.CONTENT_TYPE, "x")]),
        mqtt.disconnect(properties=[(Property.TOPIC_ALIAS, 1)]),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT_section_2_2_2_2_a_property_of_another_packet_closes(steady, data):
    link = steady.connect()
    link.send(data)
    link.refused(Reason.MALFORMED, Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "data",
    [
        mqtt.publish(
            "device/power", b"{}", qos=1, packet_id=1,
            properties=[(Property.MESSAGE_EXPIRY, 1), (Property.MESSAGE_EXPIRY, 1)],
        ),
        mqtt.puback(1, properties=[(Property.REASON_STRING, "x"), (Property.REASON_STRING, "x")]),
        mqtt.disconnect(properties=[(Property.SESSION_EXPIRY, 0), (Property.SESSION_EXPIRY, 0)]),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT_section_2_2_2_2_a_duplicate_property_closes(steady, data):
    link = steady.connect()
    link.send(data)
    link.refused(Reason.PROTOCOL_ERROR, Reason.MALFORMED)


def test_MQTT_section_2_2_2_2_user_properties_may_repeat(steady):
    link = steady.connect(properties=[mqtt.user("a", "1")] * 3 + [mqtt.user("b", "")])
    assert link.unsubscribe("foreign/topic", properties=[mqtt.user("a", "1")] * 50).reasons


@pytest.mark.parametrize(
    "data",
    [
        mqtt.packet(Kind.PINGREQ, b"x"),
        mqtt.packet(Kind.PUBACK, b"\x01"),
        mqtt.packet(Kind.PUBACK, mqtt.u16(1) + b"\0\0x"),
        mqtt.packet(Kind.SUBSCRIBE, mqtt.u16(1) + b"\0" + mqtt.text("a"), flags=2),
        mqtt.packet(Kind.SUBSCRIBE, mqtt.u16(1) + b"\0" + mqtt.u16(9) + b"a", flags=2),
        mqtt.packet(Kind.UNSUBSCRIBE, mqtt.u16(1) + b"\0" + mqtt.u16(9) + b"a", flags=2),
        mqtt.packet(Kind.PUBLISH, mqtt.u16(9) + b"a"),
        mqtt.packet(Kind.PUBLISH, mqtt.text("a") + b"\0", flags=2),
        mqtt.packet(Kind.DISCONNECT, b"\0\0x"),
    ],
    ids=[
        "PINGREQ-with-a-body", "PUBACK-of-one-byte", "PUBACK-with-a-tail", "SUBSCRIBE-without-options",
        "SUBSCRIBE-cut-off", "UNSUBSCRIBE-cut-off", "PUBLISH-cut-off", "PUBLISH-without-its-identifier",
        "DISCONNECT-with-a-tail",
    ],
)
def test_MQTT_4_13_1_1_a_packet_with_a_wrong_length_closes(steady, data):
    link = steady.connect()
    link.send(data)
    link.refused(Reason.MALFORMED)


def test_a_packet_may_come_in_any_pieces(steady):
    link = steady.connect()
    for byte in mqtt.subscribe(7, ("foreign/topic", 1)) + mqtt.PINGREQ:
        link.send(bytes([byte]))
    assert link.expect(Kind.SUBACK).packet_id == 7
    link.expect(Kind.PINGRESP)


def test_many_packets_may_come_at_once(steady):
    link = steady.connect()
    link.send(*(mqtt.subscribe(number, ("foreign/topic", 1)) for number in range(1, 101)), mqtt.PINGREQ)
    assert [link.expect(Kind.SUBACK).packet_id for _ in range(100)] == list(range(1, 101))
    link.expect(Kind.PINGRESP)
