"""MQTT 5.0, sections 3.1 and 3.2: CONNECT and CONNACK. A test is named by the statement that it checks."""

import time

import pytest

import mqtt_packets as mqtt
from mqtt_device import LONG, stays_open
from mqtt_packets import Kind, Property, Reason, Will
from service import TOPIC, once_within

FAULTY = (Reason.MALFORMED, Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "data",
    [
        mqtt.PINGREQ,
        mqtt.subscribe(1, (f"apps/{TOPIC}", 1)),
        mqtt.publish("device/power", b"{}"),
        mqtt.disconnect(),
        mqtt.auth(),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT_3_1_0_1_the_first_packet_is_connect(steady, data):
    wire = steady.wire()
    wire.send(data)
    # [MQTT-3.14.0-1]: no DISCONNECT before a CONNACK; `shut` sees to it.
    wire.shut(*FAULTY)


def test_MQTT_3_1_0_2_a_second_connect_closes(steady):
    link = steady.connect()
    link.send(mqtt.connect(steady.id))
    link.refused(Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize("protocol", ["mqtt", "MQTTT", "MQT", "", "HTTP"])
def test_MQTT_3_1_2_1_another_protocol_closes(steady, protocol):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, protocol=protocol))
    wire.shut(Reason.VERSION, *FAULTY)


@pytest.mark.parametrize("level", [6, 7, 255])
def test_MQTT_3_1_2_2_a_newer_version_is_refused_as_unsupported(steady, level):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, level=level))
    wire.refused_at_connect(Reason.VERSION)


def test_MQTT_3_1_2_3_the_reserved_connect_flag_closes(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, flags=0b0000_0011))
    wire.shut(Reason.MALFORMED)


def test_MQTT_3_1_2_4_and_3_1_4_4_a_clean_start_discards_the_session(device, provider):
    link = device.stay()
    token = link.register()
    link.leave()
    link = device.connect(clean=True, expiry=LONG)
    assert not link.connack.session_present
    assert provider.push(token).status == 200
    # Its subscription went with the session: the notification waits for another.
    link.quiet()
    link.subscribe(f"apps/{TOPIC}")
    link.notification()


def test_MQTT_3_1_2_5_an_existing_session_is_resumed(device, provider):
    link = device.stay()
    token = link.register()
    link.leave()
    link = device.stay()
    assert link.connack.session_present
    assert provider.push(token).status == 200
    link.notification()


def test_MQTT_3_1_2_6_without_a_session_a_new_one_is_made(device):
    assert not device.stay().connack.session_present


@pytest.mark.parametrize("qos", [1, 2])
def test_MQTT_3_1_2_11_a_will_qos_without_a_will_closes(steady, qos):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, flags=0b10 | qos << 3))
    wire.shut(Reason.MALFORMED)


def test_MQTT_3_1_2_12_a_will_qos_of_3_closes(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, will=Will(qos=3)))
    wire.shut(Reason.MALFORMED)


def test_MQTT_3_1_2_13_will_retain_without_a_will_closes(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, flags=0b0010_0010))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize("flags", [0b1000_0010, 0b0100_0010, 0b0000_0110], ids=["user-name", "password", "will"])
def test_MQTT_3_1_2_9_17_and_19_an_announced_but_absent_field_closes(steady, flags):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, flags=flags))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize("fields", [{"username": "u"}, {"password": "p"}, {"will": Will()}], ids=str)
def test_MQTT_3_1_2_16_and_18_an_unannounced_field_closes(steady, fields):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, flags=0b10, **fields))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize(
    "fields", [{"username": "u"}, {"password": "p"}, {"username": "", "password": b"\xff"}], ids=str
)
def test_MQTT_3_1_2_17_and_19_a_user_name_and_a_password_are_accepted(steady, fields):
    # The certificate has the identity; both fields are read and ignored.
    steady.connect(**fields).settled()


def test_MQTT_3_1_2_22_silence_of_one_and_a_half_keep_alives_closes(steady):
    began = time.monotonic()
    steady.connect(keep_alive=1).refused_after(1.5, Reason.KEEP_ALIVE, since=began)


@pytest.mark.parametrize("data", [mqtt.PINGREQ, mqtt.subscribe(1, ("foreign/topic", 1))], ids=["PINGREQ", "SUBSCRIBE"])
def test_MQTT_3_1_2_22_any_packet_within_the_keep_alive_keeps_the_connection(steady, data):
    def tell(link):
        link.send(data)
        link.read()
        link.quiet(1)

    stays_open(lambda: steady.connect(keep_alive=3), tell)


def test_MQTT_3_1_2_22_half_a_packet_does_not_keep_the_connection(steady):
    link = steady.connect(keep_alive=1)
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", 1))[:-1])
    link.refused(Reason.KEEP_ALIVE)


def test_MQTT_3_1_2_23_a_session_outlives_its_connection_by_its_interval(device):
    device.connect(clean=True, expiry=LONG).leave()
    assert device.connect(clean=False, expiry=0).connack.session_present


def test_MQTT_3_1_2_23_without_an_interval_a_session_ends_with_its_connection(device):
    device.connect(clean=True).leave()
    assert not device.connect(clean=False).connack.session_present


def test_MQTT_3_1_2_24_and_25_a_publish_larger_than_the_maximum_packet_size_counts_as_sent(device, provider):
    link = device.stay(properties=[(Property.MAXIMUM_PACKET_SIZE, 400)])
    token = link.register()
    assert provider.push(token, {"aps": {"alert": "x" * 400}}).status == 200
    link.quiet()
    link.leave()
    link = device.stay()
    link.quiet()
    assert provider.push(token, b'{"next":1}').status == 200
    assert link.notification().payload == b'{"next":1}'


def test_MQTT_3_1_2_24_a_publish_of_exactly_the_maximum_packet_size_is_sent(device, provider):
    link = device.connect()
    token = link.register()
    apns = {"id": "11111111-2222-3333-4444-555555555555", "priority": 10, "push_type": "alert"}
    assert provider.push(token, b'{"a":"' + b"x" * 200 + b'"}', **apns).status == 200
    size = link.notification().size
    link.leave()
    link = device.connect(properties=[(Property.MAXIMUM_PACKET_SIZE, size)])
    link.register()
    assert provider.push(token, b'{"a":"' + b"x" * 200 + b'"}', **apns).status == 200
    link.notification()
    assert provider.push(token, b'{"a":"' + b"x" * 201 + b'"}', **apns).status == 200
    link.quiet()


@pytest.mark.parametrize("extra", [(), [(Property.TOPIC_ALIAS_MAXIMUM, 0)]], ids=["absent", "zero"])
def test_MQTT_3_1_2_26_and_27_and_3_3_2_11_no_topic_alias_is_sent_by_default(device, provider, extra):
    link = device.connect(properties=extra)
    token = link.register()
    for _ in range(3):
        assert provider.push(token).status == 200
        assert link.notification().value(Property.TOPIC_ALIAS) is None


@pytest.mark.parametrize("extra", [(), [(Property.REQUEST_RESPONSE_INFORMATION, 0)]], ids=["absent", "zero"])
def test_MQTT_3_1_2_28_response_information_only_when_asked_for(steady, extra):
    assert steady.connect(properties=extra).connack.value(Property.RESPONSE_INFORMATION) is None


def test_MQTT_3_1_2_29_no_reason_strings_without_request_problem_information(steady):
    link = steady.connect(properties=[(Property.REQUEST_PROBLEM_INFORMATION, 0)])
    assert not link.subscribe("foreign/topic").properties
    assert not link.unsubscribe("foreign/topic").properties
    assert not link.publish("foreign/topic").properties


@pytest.mark.parametrize(
    "pair",
    [
        (Property.RECEIVE_MAXIMUM, 0),
        (Property.MAXIMUM_PACKET_SIZE, 0),
        (Property.REQUEST_PROBLEM_INFORMATION, 2),
        (Property.REQUEST_RESPONSE_INFORMATION, 2),
        (Property.AUTHENTICATION_DATA, b"without a method"),
        (Property.MESSAGE_EXPIRY, 1),
        (Property.TOPIC_ALIAS, 1),
        (Property.WILL_DELAY, 1),
    ],
    ids=lambda pair: f"{pair[0].name}={pair[1]}",
)
def test_MQTT_section_3_1_2_11_a_wrong_connect_property_closes(steady, pair):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, properties=[pair]))
    wire.shut(*FAULTY)


@pytest.mark.parametrize(
    "pair",
    [
        (Property.SESSION_EXPIRY, 1),
        (Property.RECEIVE_MAXIMUM, 1),
        (Property.MAXIMUM_PACKET_SIZE, 1000),
        (Property.TOPIC_ALIAS_MAXIMUM, 1),
        (Property.REQUEST_RESPONSE_INFORMATION, 1),
        (Property.REQUEST_PROBLEM_INFORMATION, 1),
        (Property.AUTHENTICATION_METHOD, "x"),
    ],
    ids=lambda pair: pair[0].name,
)
def test_MQTT_section_3_1_2_11_a_duplicate_connect_property_closes(steady, pair):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, properties=[pair, pair]))
    wire.shut(*FAULTY)


def test_MQTT_3_1_3_1_a_connect_with_every_field_is_read(steady):
    will = Will(
        payload=b"\0\xff",
        properties=(
            (Property.WILL_DELAY, 5), (Property.PAYLOAD_FORMAT, 0), (Property.MESSAGE_EXPIRY, 9),
            (Property.CONTENT_TYPE, "text/plain"), (Property.RESPONSE_TOPIC, "r"), (Property.CORRELATION_DATA, b"\0"),
            mqtt.user("a", "b"),
        ),
    )
    everything = [
        (Property.RECEIVE_MAXIMUM, 65535), (Property.MAXIMUM_PACKET_SIZE, 0xFFFFFFFF),
        (Property.TOPIC_ALIAS_MAXIMUM, 65535), (Property.REQUEST_RESPONSE_INFORMATION, 1),
        (Property.REQUEST_PROBLEM_INFORMATION, 1), mqtt.user("a", "b"),
    ]
    steady.connect(properties=everything, expiry=0, will=will, username="u", password="p").settled()


def test_MQTT_3_1_3_2_a_session_is_found_by_its_client_identifier(device, other):
    device.stay().leave()
    assert not other.stay().connack.session_present
    assert device.stay().connack.session_present


def test_MQTT_3_1_3_3_a_connect_without_a_client_identifier_closes(steady):
    wire = steady.wire()
    wire.send(mqtt.packet(Kind.CONNECT, mqtt.text("MQTT") + b"\x05\x02" + mqtt.u16(60) + b"\0"))
    wire.shut(Reason.MALFORMED)


@pytest.mark.parametrize("identifier", ["a", "0123456789abcdefghijABC", "ABCDEFGHIJKLMNOPQRSTUVW"])
def test_MQTT_3_1_3_5_and_3_1_4_2_a_valid_but_foreign_client_identifier_is_refused(steady, identifier):
    # The contract binds the identifier to the certificate: an authorization, which the standard leaves to the server.
    wire = steady.wire()
    wire.send(mqtt.connect(identifier))
    connack = wire.refused_at_connect(Reason.CLIENT_ID)
    assert connack.value(Property.REASON_STRING) == f"use {steady.id}"


def test_MQTT_3_1_3_6_and_7_and_3_2_2_16_an_empty_client_identifier_becomes_the_devices(steady):
    # The last of these wants a new identifier: the contract gives the one that this certificate may use.
    link = steady.connect(client_id="")
    assert link.connack.value(Property.ASSIGNED_CLIENT_ID) == steady.id


def test_MQTT_3_1_3_7_an_assigned_identifier_counts_as_the_clients(device):
    link = device.connect(client_id="", expiry=LONG)
    link.register()
    link.leave()
    assert device.stay().connack.session_present


def test_MQTT_3_1_3_8_an_empty_client_identifier_without_clean_start_is_refused(steady):
    wire = steady.wire()
    wire.send(mqtt.connect("", clean=False))
    wire.refused_at_connect(Reason.CLIENT_ID)


def test_MQTT_3_1_4_1_a_truncated_connect_closes(steady):
    whole = mqtt.connect(steady.id, properties=[(Property.RECEIVE_MAXIMUM, 5)], will=Will(), username="u", password="p")
    body = whole[2:]
    for size in range(0, len(body), 3):
        with steady.wire() as wire:
            wire.send(mqtt.packet(Kind.CONNECT, body[:size]))
            wire.shut(*FAULTY, Reason.VERSION, Reason.CLIENT_ID)


def test_MQTT_3_1_4_1_a_connect_with_a_tail_closes(steady):
    wire = steady.wire()
    wire.send(mqtt.packet(Kind.CONNECT, mqtt.connect(steady.id)[2:] + b"x"))
    wire.shut(Reason.MALFORMED)


def test_MQTT_3_1_4_3_a_newer_connection_of_the_client_takes_over(device):
    old = device.connect()
    new = device.connect()
    old.refused(Reason.TAKEN_OVER)
    new.settled()


def test_MQTT_3_1_4_6_packets_after_a_refused_connect_are_not_processed(device, other, provider):
    link = device.connect()
    token = link.register()
    link.leave()
    wire = device.wire()
    # Were the UNSUBSCRIBE heeded, the app would be gone.
    wire.send(mqtt.connect(other.id), mqtt.unsubscribe(1, f"apps/{TOPIC}/#"), mqtt.PINGREQ)
    wire.refused_at_connect(Reason.CLIENT_ID)
    assert provider.push(token).status == 200


def test_MQTT_3_2_0_1_and_2_and_3_1_4_5_connack_is_the_first_packet_and_the_rest_is_answered_in_order(steady):
    link = steady.wire()
    link.send(mqtt.connect(steady.id), mqtt.PINGREQ, mqtt.subscribe(1, ("foreign/topic", 1)), mqtt.PINGREQ)
    kinds = [link.read().kind for _ in range(4)]
    assert kinds == [Kind.CONNACK, Kind.PINGRESP, Kind.SUBACK, Kind.PINGRESP]


def test_MQTT_3_2_2_1_and_8_an_accepting_connack_is_three_zeroes_and_properties(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id))
    data = wire.socket.recv(4096)
    assert (data[0], data[1], data[2:4]) == (0x20, len(data) - 2, b"\0\0")


def test_MQTT_3_2_2_6_and_7_a_refusal_has_no_session_present_and_closes(device):
    device.stay().leave()
    wire = device.wire()
    wire.send(mqtt.connect(device.id, clean=False, will=Will(qos=2)))
    assert not wire.refused_at_connect(Reason.QOS).session_present
    assert device.stay().connack.session_present


def test_MQTT_3_2_2_2_a_clean_start_has_no_session_present(device):
    device.stay().leave()
    assert not device.connect(clean=True).connack.session_present


def test_MQTT_3_2_2_3_session_present_is_true_for_an_existing_session(device):
    first = device.stay()
    assert not first.connack.session_present
    first.leave()
    second = device.stay()
    assert second.connack.session_present
    second.leave(properties=[(Property.SESSION_EXPIRY, 0)])
    assert not device.stay().connack.session_present


def test_MQTT_3_2_2_9_unsupported_features_are_announced(steady):
    connack = steady.connect().connack
    assert connack.value(Property.MAXIMUM_QOS) == 1
    assert connack.value(Property.RETAIN_AVAILABLE) == 0
    assert connack.value(Property.SHARED_AVAILABLE) == 0
    assert connack.value(Property.SUBSCRIPTION_ID_AVAILABLE) == 0
    # No client topic aliases: zero, or absent, which means zero (§3.2.2.3.8).
    assert not connack.value(Property.TOPIC_ALIAS_MAXIMUM)
    # `apps/<topic>/#` is a wildcard: clients would refuse to send it if there were none.
    assert connack.value(Property.WILDCARD_AVAILABLE) != 0


def test_MQTT_3_2_2_10_a_subscription_at_qos_2_is_granted_qos_1(device):
    assert device.connect().subscribe(f"apps/{TOPIC}", qos=2).reasons == (1,)


def test_MQTT_3_2_2_12_a_will_at_qos_2_is_refused(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, will=Will(qos=2)))
    wire.refused_at_connect(Reason.QOS)


def test_MQTT_3_2_2_13_and_3_1_2_15_a_retained_will_is_refused(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, will=Will(retain=True)))
    wire.refused_at_connect(Reason.RETAIN)


def test_MQTT_3_2_2_19_and_20_no_reason_string_beyond_the_maximum_packet_size(steady):
    wire = steady.wire()
    wire.maximum_packet_size = 20
    wire.send(mqtt.connect("another", properties=[(Property.MAXIMUM_PACKET_SIZE, 20)]))
    wire.refused_at_connect(Reason.CLIENT_ID)


def test_MQTT_3_2_2_21_a_keep_alive_of_zero_or_too_long_is_replaced(steady):
    for wanted in (0, 65535):
        with steady.connect(keep_alive=wanted) as link:
            assert 0 < link.connack.value(Property.SERVER_KEEP_ALIVE) < 65535
            link.leave()


def test_MQTT_3_2_2_22_a_keep_alive_within_bounds_stands(steady):
    assert steady.connect(keep_alive=60).connack.value(Property.SERVER_KEEP_ALIVE) in (None, 60)


@pytest.mark.parametrize("interval", [LONG, 0xFFFFFFFF], ids=["an-hour", "for-ever"])
def test_MQTT_section_3_1_2_11_a_session_expiry_interval_is_kept_or_replaced_by_a_shorter_one(device, interval):
    answered = device.connect(expiry=interval).connack.value(Property.SESSION_EXPIRY)
    assert answered is None or 0 < answered <= interval


def test_MQTT_4_12_0_1_an_authentication_method_is_refused(steady):
    wire = steady.wire()
    wire.send(mqtt.connect(steady.id, properties=[(Property.AUTHENTICATION_METHOD, "SCRAM-SHA-1")]))
    wire.refused_at_connect(Reason.AUTHENTICATION_METHOD)


def test_MQTT_4_12_0_6_without_an_authentication_method_none_is_named(steady):
    assert steady.connect().connack.value(Property.AUTHENTICATION_METHOD) is None


def test_MQTT_4_12_0_7_an_auth_without_a_method_closes(steady):
    link = steady.connect()
    link.send(mqtt.auth())
    link.refused(Reason.PROTOCOL_ERROR)


def test_MQTT_3_15_1_1_an_empty_auth_closes(steady):
    link = steady.connect()
    link.send(mqtt.packet(Kind.AUTH))
    link.refused(Reason.PROTOCOL_ERROR, Reason.MALFORMED)


def test_an_endless_connect_is_timed_out_and_not_buffered(steady):
    # A service that waited would give up after five seconds.
    once_within(4.5, lambda: seconds_of_an_endless_connect(steady))


def seconds_of_an_endless_connect(steady):
    wire = steady.wire()
    began = time.monotonic()
    # 256 MB are announced: refused at once, and not when they have come.
    wire.send(bytes([Kind.CONNECT << 4]) + b"\xff\xff\xff\x7f" + b"\0\4MQTT\5")
    wire.shut(Reason.PACKET_TOO_LARGE, *FAULTY)
    return time.monotonic() - began
