"""MQTT 3.1.1 (OASIS, 29 October 2014), by its own statement numbers, as far as they bind a server of this contract.

A 3.1.1 server explains nothing: after CONNACK it closes the connection, or it does not.
"""

import time

import pytest

import mqtt_packets as mqtt
from mqtt_device import APPS, MAIL, stays_open
from mqtt_packets import Kind, Will
from mqtt_wire import Closed
from service import TOPIC

SETTINGS = f"apps/{TOPIC}/settings"
ENABLED = b'{"enabled":true}'
BAD_VERSION, BAD_IDENTIFIER = 1, 2
FAILURE = 0x80


@pytest.fixture
def wire(steady):
    """A connection before its CONNECT."""
    return steady.wire(version=4)


@pytest.fixture
def link(steady):
    """A connection of a device that registers nothing."""
    return steady.connect(4)


@pytest.mark.parametrize("value", [b"\xed\xa0\x80", b"\xc0\xaf", b"a\x80"], ids=["surrogate", "overlong", "lone"])
def test_MQTT311_1_5_3_1_and_3_8_3_1_a_filter_that_is_not_utf_8_closes(link, value):
    link.send(mqtt.subscribe(1, (value, 1), version=4))
    link.refused()


def test_MQTT311_3_10_3_1_a_filter_that_is_not_utf_8_closes(link):
    link.send(mqtt.unsubscribe(1, b"\xed\xa0\x80", version=4))
    link.refused()


@pytest.mark.parametrize(
    "data",
    [mqtt.publish(b"a\0b", b"{}", 4, qos=1, packet_id=1), mqtt.subscribe(1, (b"a\0b", 1), version=4)],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT311_1_5_3_2_and_4_7_3_2_a_null_character_closes(link, data):
    link.send(data)
    link.refused()


def test_MQTT311_1_5_3_3_a_byte_order_mark_is_part_of_a_filter(link):
    assert link.subscribe(f"\ufeffapps/{TOPIC}").reasons == (FAILURE,)


@pytest.mark.parametrize(
    "data",
    [
        mqtt.packet(Kind.PUBACK, mqtt.u16(1), flags=1),
        mqtt.packet(Kind.PUBREL, mqtt.u16(1), flags=0),
        mqtt.subscribe(1, (f"apps/{TOPIC}", 1), version=4, flags=0),
        mqtt.unsubscribe(1, f"apps/{TOPIC}", version=4, flags=3),
        mqtt.packet(Kind.PINGREQ, flags=8),
        mqtt.packet(Kind.DISCONNECT, flags=1),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT311_2_2_2_2_and_3_8_1_1_and_3_10_1_1_and_3_14_1_1_other_flags_close(link, data):
    link.send(data)
    link.refused()


@pytest.mark.parametrize("kind", [0, Kind.CONNACK, Kind.SUBACK, Kind.UNSUBACK, Kind.PINGRESP, Kind.AUTH], ids=str)
def test_MQTT311_4_8_0_1_a_packet_that_no_client_sends_closes(link, kind):
    link.send(mqtt.packet(kind, mqtt.u16(1)))
    link.refused()


@pytest.mark.parametrize(
    "data",
    [
        mqtt.publish(SETTINGS, ENABLED, 4, qos=1, packet_id=0),
        mqtt.subscribe(0, (f"apps/{TOPIC}", 1), version=4),
        mqtt.unsubscribe(0, f"apps/{TOPIC}", version=4),
    ],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT311_2_3_1_1_a_packet_identifier_of_zero_closes(link, data):
    link.send(data)
    link.refused()


def test_MQTT311_2_3_1_4_and_4_3_2_1_packet_identifiers_in_flight_are_not_zero_and_all_different(device, provider):
    link = device.connect(4)
    found = []
    # Few: a service that knows no receive maximum keeps a small window (it has to guess).
    for app, token in zip(APPS, link.register(*APPS[:4])):
        assert provider.push(token, topic=app).status == 200
        found.append(link.expect(Kind.PUBLISH))
    assert len({publish.packet_id for publish in found}) == 4


@pytest.mark.parametrize("number", [1, 0x1234, 65535])
def test_MQTT311_2_3_1_6_and_7_and_3_8_4_1_and_2_and_3_10_4_4_an_answer_has_the_packet_identifier_of_its_request(link, number):
    link.send(mqtt.subscribe(number, ("foreign/topic", 1), version=4))
    assert link.expect(Kind.SUBACK).packet_id == number
    link.send(mqtt.unsubscribe(number, "foreign/topic", version=4))
    assert link.expect(Kind.UNSUBACK).packet_id == number
    link.send(mqtt.publish("device/power", b'{"saving":false}', 4, qos=1, packet_id=number))
    assert link.expect(Kind.PUBACK).packet_id == number


@pytest.mark.parametrize(
    "data",
    [mqtt.PINGREQ, mqtt.subscribe(1, (f"apps/{TOPIC}", 1), version=4), mqtt.disconnect(4)],
    ids=lambda data: Kind(data[0] >> 4).name,
)
def test_MQTT311_3_1_0_1_the_first_packet_is_connect(wire, data):
    wire.send(data)
    assert wire.until_closed() == []


def test_MQTT311_3_1_0_2_a_second_connect_closes(steady, link):
    link.send(mqtt.connect(steady.id, 4))
    link.refused()


@pytest.mark.parametrize("protocol", ["mqtt", "MQTTT", ""])
def test_MQTT311_3_1_2_1_another_protocol_is_not_processed(steady, wire, protocol):
    wire.send(mqtt.connect(steady.id, 4, protocol=protocol))
    assert wire.until_closed() == []


@pytest.mark.parametrize("protocol, level", [("MQTT", 3), ("MQTT", 0), ("MQIsdp", 3)])
def test_MQTT311_3_1_2_2_an_older_version_is_refused_as_unsupported(steady, wire, protocol, level):
    wire.send(mqtt.connect(steady.id, 4, protocol=protocol, level=level))
    wire.refused_at_connect(BAD_VERSION)


def test_MQTT311_3_1_2_3_the_reserved_connect_flag_closes(steady, wire):
    wire.send(mqtt.connect(steady.id, 4, flags=0b11))
    # [MQTT-3.1.4-1]: without a CONNACK.
    assert wire.until_closed() == []


def test_MQTT311_3_1_2_4_and_5_and_3_2_2_2_an_existing_session_is_resumed(device, provider):
    link = device.stay(4)
    assert not link.connack.session_present
    token = link.register()
    link.leave()
    # Notifications in the meantime are stored.
    assert provider.push(token).status == 200
    link = device.stay(4)
    assert link.connack.session_present
    link.notification()


def test_MQTT311_3_1_2_6_and_3_1_4_3_and_3_2_2_1_and_3_a_clean_session_discards_the_earlier_one(device, provider):
    link = device.stay(4)
    token = link.register()
    link.leave()
    link = device.connect(4)
    assert not link.connack.session_present
    assert provider.push(token).status == 200
    link.quiet()
    link.leave()
    # And the clean one leaves none.
    assert not device.stay(4).connack.session_present


def test_MQTT311_3_1_2_8_a_will_is_accepted_and_reaches_nobody(device, other):
    # The contract: no device receives what another one publishes.
    watching = other.connect(4)
    watching.register()
    device.connect(4, will=Will(topic=f"apps/{TOPIC}", qos=1)).close()
    watching.quiet()


@pytest.mark.parametrize(
    "flags",
    [0b0000_1010, 0b0010_0010, 0b0001_1110, 0b0000_0110, 0b1000_0010, 0b0100_0010],
    ids=["will-qos-alone", "will-retain-alone", "will-qos-3", "will-absent", "user-name-absent", "password-alone"],
)
def test_MQTT311_3_1_2_9_to_22_inconsistent_connect_flags_close(steady, wire, flags):
    wire.send(mqtt.connect(steady.id, 4, flags=flags))
    assert wire.until_closed() == []


def test_MQTT311_3_1_2_22_a_password_without_a_user_name_closes(steady, wire):
    wire.send(mqtt.connect(steady.id, 4, password="p"))
    assert wire.until_closed() == []


def test_MQTT311_3_1_2_19_and_21_a_user_name_and_a_password_are_accepted(steady):
    steady.connect(4, username="u", password="p").settled()


def test_MQTT311_3_1_2_24_silence_of_one_and_a_half_keep_alives_closes(steady):
    began = time.monotonic()
    steady.connect(4, keep_alive=1).refused_after(1.5, since=began)


def test_MQTT311_3_1_2_24_a_pingreq_within_the_keep_alive_keeps_the_connection(steady):
    def tell(link):
        link.quiet(1)
        link.settled()

    stays_open(lambda: steady.connect(4, keep_alive=3), tell)


def test_MQTT311_3_1_3_3_a_connect_without_a_client_identifier_closes(wire):
    wire.send(mqtt.packet(Kind.CONNECT, mqtt.text("MQTT") + b"\x04\x02" + mqtt.u16(60)))
    assert wire.until_closed() == []


def test_MQTT311_3_1_3_6_an_empty_client_identifier_becomes_the_devices(device, provider):
    # There is no packet to say so in; what the device registers shows that it is the certificate's.
    link = device.connect(4, client_id="")
    token = link.register()
    link.leave()
    assert device.connect(4).register() == token


def test_MQTT311_3_1_3_7_and_8_an_empty_client_identifier_without_a_clean_session_is_refused(wire):
    wire.send(mqtt.connect("", 4, clean=False))
    wire.refused_at_connect(BAD_IDENTIFIER)


@pytest.mark.parametrize("identifier", ["a", "0123456789abcdefghijABC"])
def test_MQTT311_3_1_3_5_and_9_the_identifier_of_another_is_refused(wire, identifier):
    # Identifiers of 1 to 23 alphanumeric characters are allowed by form; the contract binds them to the certificate.
    wire.send(mqtt.connect(identifier, 4))
    wire.refused_at_connect(BAD_IDENTIFIER)


@pytest.mark.parametrize("tail", [b"", b"x"], ids=["cut-off", "with-a-tail"])
def test_MQTT311_3_1_4_1_and_3_2_2_6_a_connect_with_a_wrong_length_closes(steady, wire, tail):
    body = mqtt.connect(steady.id, 4)[2:]
    wire.send(mqtt.packet(Kind.CONNECT, body + tail if tail else body[:-1]))
    assert wire.until_closed() == []


def test_MQTT311_3_1_4_2_a_newer_connection_of_the_client_takes_over(device):
    old = device.connect(4)
    new = device.connect(4)
    assert old.until_closed() == []
    new.settled()


def test_MQTT311_3_1_4_5_packets_after_a_refused_connect_are_not_processed(device, provider):
    link = device.connect(4)
    token = link.register()
    link.leave()
    wire = device.wire(version=4)
    wire.send(mqtt.connect("another", 4), mqtt.unsubscribe(1, f"apps/{TOPIC}/#", version=4), mqtt.PINGREQ)
    wire.refused_at_connect(BAD_IDENTIFIER)
    assert provider.push(token).status == 200


def test_MQTT311_3_2_0_1_and_3_1_4_4_connack_is_the_first_packet_and_the_rest_is_answered_in_order(steady, wire):
    wire.send(mqtt.connect(steady.id, 4), mqtt.subscribe(1, ("foreign/topic", 1), version=4), mqtt.PINGREQ)
    assert [wire.read().kind for _ in range(3)] == [Kind.CONNACK, Kind.SUBACK, Kind.PINGRESP]


def test_MQTT311_3_2_2_4_and_5_a_refusal_has_no_session_present_and_closes(device):
    device.stay(4).leave()
    wire = device.wire(version=4)
    wire.send(mqtt.connect("another", 4, clean=False))
    assert not wire.refused_at_connect(BAD_IDENTIFIER).session_present


def test_MQTT311_3_3_1_1_and_4_4_0_1_and_2_3_1_3_an_unacknowledged_publish_is_sent_again(device, provider):
    link = device.stay(4)
    token = link.register()
    assert provider.push(token).status == 200
    before = link.notification(acknowledge=False)
    assert not before.duplicate
    # The contract: only after a reconnect, as in 5.0.
    link.quiet(0.5)
    link.leave()
    after = device.stay(4).notification()
    assert after.duplicate
    assert after.packet_id == before.packet_id


def test_MQTT311_3_3_1_2_and_4_3_1_1_and_2_3_1_5_a_publish_at_qos_0_is_sent_once(device, provider):
    link = device.connect(4)
    token = link.register(qos=0)
    assert provider.push(token).status == 200
    found = link.notification()
    assert (found.qos, found.duplicate, found.packet_id) == (0, False, None)
    link.leave()
    link = device.connect(4)
    link.register()
    link.quiet()


def test_MQTT311_3_3_1_4_both_qos_bits_close(link):
    link.send(mqtt.publish(SETTINGS, ENABLED, 4, packet_id=1, flags=0b0110))
    link.refused()


def test_MQTT311_3_3_1_9_nothing_is_retained(device, provider):
    link = device.connect(4)
    link.subscribe(f"apps/{TOPIC}/#")
    found = link.next(f"apps/{TOPIC}/token")
    assert not found.retain
    assert provider.push(found.payload.decode()).status == 200
    assert not link.notification().retain


@pytest.mark.parametrize("topic", [f"apps/{TOPIC}/#", "apps/+/settings", ""], ids=["number-sign", "plus", "empty"])
def test_MQTT311_3_3_2_2_and_4_7_1_1_and_4_7_3_1_an_invalid_topic_name_closes(link, topic):
    link.send(mqtt.publish(topic, ENABLED, 4, qos=1, packet_id=1))
    link.refused()


def test_MQTT311_3_3_4_1_a_publish_at_qos_1_is_acknowledged(device):
    link = device.connect(4)
    link.register()
    link.publish(SETTINGS, ENABLED)


def test_MQTT311_3_3_5_1_overlapping_filters_give_one_copy_at_the_highest_qos(device, provider):
    link = device.connect(4)
    link.subscribe((f"apps/{TOPIC}", 1), (f"apps/{TOPIC}/#", 0))
    assert provider.push(link.token()).status == 200
    assert link.notification().qos == 1
    link.quiet()


def test_MQTT311_3_3_5_2_a_publish_to_a_topic_of_another_closes(link):
    # 3.1.1 leaves a positive acknowledgement or the end of the connection; the contract takes the honest one.
    link.send(mqtt.publish("foreign/topic", b"{}", 4, qos=1, packet_id=1))
    assert link.refused() == []


def test_a_publish_at_qos_2_closes(link):
    link.send(mqtt.publish(SETTINGS, ENABLED, 4, qos=2, packet_id=1))
    assert link.refused() == []


@pytest.mark.parametrize("name", ["#", "apps/#", "+", "apps/+/token", f"apps/{TOPIC}/+", "$SYS/#", "foreign/topic"])
def test_MQTT311_3_8_3_2_and_3_9_3_2_a_filter_outside_the_contract_is_refused_by_its_code(link, name):
    assert link.subscribe(name).reasons == (FAILURE,)
    link.settled()


@pytest.mark.parametrize("build", [mqtt.subscribe, mqtt.unsubscribe], ids=["SUBSCRIBE", "UNSUBSCRIBE"])
def test_MQTT311_3_8_3_3_and_3_10_3_2_a_packet_without_a_filter_closes(link, build):
    link.send(build(1, version=4))
    link.refused()


@pytest.mark.parametrize("options", [0b11, 0b100, 0b1000_0001])
def test_MQTT311_3_8_3_4_an_unknown_qos_closes(link, options):
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", options), version=4))
    link.refused()


def test_MQTT311_3_8_4_3_the_same_filter_again_replaces_the_subscription(device, provider):
    link = device.connect(4)
    token = link.register(qos=1)
    assert link.register(qos=0) == token
    assert provider.push(token).status == 200
    assert link.notification().qos == 0
    link.quiet()


def test_MQTT311_3_8_4_4_to_6_several_filters_have_one_suback_with_a_code_for_each(device):
    link = device.connect(4)
    suback = link.subscribe((f"apps/{TOPIC}", 1), ("foreign", 1), (f"apps/{MAIL}", 0), (f"apps/{APPS[0]}", 2))
    # [MQTT-3.9.3-1]: in their order. QoS 2 is granted as 1.
    assert suback.reasons == (1, FAILURE, 0, 1)


def test_MQTT311_3_10_4_1_and_6_subscriptions_are_found_by_their_exact_filters(device, provider):
    link = device.connect(4)
    token, mail = link.register(TOPIC, MAIL)
    link.unsubscribe(f"apps/{TOPIC}/+", f"apps/{MAIL}/#", f"apps/{TOPIC}")
    assert provider.push(token).status == 200
    link.notification()
    assert provider.push(mail, topic=MAIL).status == 410


def test_MQTT311_3_10_4_2_and_3_after_unsuback_only_old_publishes_are_acknowledged(device, provider):
    link = device.connect(4)
    link.subscribe(f"apps/{TOPIC}", f"apps/{TOPIC}/token")
    token = link.token()
    assert provider.push(token).status == 200
    found = link.notification(acknowledge=False)
    link.unsubscribe(f"apps/{TOPIC}")
    link.acknowledge(found)
    assert provider.push(token, b'{"next":1}').status == 200
    link.quiet()
    link.subscribe(f"apps/{TOPIC}")
    assert link.notification().payload == b'{"next":1}'


def test_MQTT311_3_10_4_5_unsubscribe_is_answered_even_if_nothing_was_subscribed(link):
    link.unsubscribe(f"apps/{TOPIC}", "foreign/topic")


def test_MQTT311_3_12_4_1_pingreq_is_answered_by_pingresp(link):
    for _ in range(3):
        link.settled()


def test_MQTT311_3_14_4_2_after_disconnect_the_service_closes(link):
    link.send(mqtt.disconnect(4), mqtt.PINGREQ)
    assert link.until_closed() == []


def test_MQTT311_4_3_2_2_and_3_3_1_3_after_its_puback_an_identifier_names_a_new_message(device, provider):
    link = device.connect(4)
    token = link.register()
    for body, duplicate in ((b'{"enabled":false}', False), (ENABLED, True)):
        link.send(mqtt.publish(SETTINGS, body, 4, qos=1, packet_id=9, duplicate=duplicate))
        assert link.expect(Kind.PUBACK).packet_id == 9
    assert provider.push(token).status == 200
    assert not link.notification().duplicate


def test_MQTT311_4_6_0_6_notifications_for_a_topic_come_in_the_order_of_the_provider(device, provider):
    link = device.connect(4)
    token = link.register_and_receive(provider)
    streams = [provider.send(token, {"n": number}) for number in range(30)]
    assert [link.notification().payload for _ in streams] == [b'{"n":%d}' % number for number in range(30)]
    assert {provider.answer(stream).status for stream in streams} == {200}


def test_MQTT311_4_7_3_3_a_filter_may_be_very_long(link):
    # 65,535 bytes are the most; the packet is then larger than the service takes, which 3.1.1 has no way to announce.
    assert link.subscribe("apps/" + "x" * 30_000).reasons == (FAILURE,)


@pytest.mark.parametrize("name", ["/apps/{}", "apps/{}/", "Apps/{}", "apps//{}", " apps/{}"])
def test_MQTT311_4_7_3_4_nothing_is_normalized(link, name):
    assert link.subscribe(name.format(TOPIC)).reasons == (FAILURE,)


@pytest.mark.parametrize("name", [f"apps/{TOPIC}#", f"apps/+{TOPIC}", "apps/#/token"])
def test_MQTT311_4_7_1_2_and_3_a_wildcard_that_does_not_fill_its_level_is_refused(link, name):
    link.send(mqtt.subscribe(1, (name, 1), version=4))
    # The standard leaves open whether such a filter is the packet's fault or only its own.
    try:
        assert link.read().reasons == (FAILURE,)
    except Closed:
        pass
