"""MQTT 5.0, sections 3.3 to 3.7, 4.3, 4.4, 4.6 and 4.9: PUBLISH, both ways. A test is named by the statement that it checks."""

import time

import pytest

import mqtt_packets as mqtt
from mqtt_device import APPS
from mqtt_packets import Kind, Property, Reason
from mqtt_wire import Closed
from service import TOPIC

SETTINGS = f"apps/{TOPIC}/settings"
ENABLED = b'{"enabled":true}'
FAULTY = (Reason.MALFORMED, Reason.PROTOCOL_ERROR)


# From the service.


def test_MQTT_3_3_1_1_dup_is_set_when_a_publish_is_sent_again(device, provider):
    link = device.stay()
    token = link.register()
    assert provider.push(token).status == 200
    assert not link.notification(acknowledge=False).duplicate
    link.leave()
    assert device.stay().notification().duplicate


def test_MQTT_3_3_1_2_at_qos_0_dup_is_never_set(device, provider):
    link = device.stay()
    token = link.register(qos=0)
    link.leave()
    assert provider.push(token).status == 200
    found = device.stay().notification()
    assert found.qos == 0 and not found.duplicate


def test_MQTT_3_3_2_1_and_3_the_topic_name_matches_the_subscription(device, provider):
    link = device.connect()
    link.subscribe(f"apps/{APPS[0]}/#", f"apps/{APPS[1]}/token", f"apps/{APPS[2]}")
    tokens = {found.topic: found.payload.decode() for found in (link.next() for _ in range(2))}
    assert set(tokens) == {f"apps/{APPS[0]}/token", f"apps/{APPS[1]}/token"}
    for app in APPS[:2]:
        assert provider.push(tokens[f"apps/{app}/token"], topic=app).status == 200
    link.notification(APPS[0])
    link.quiet()


def test_MQTT_3_3_2_15_to_20_a_device_gets_none_of_its_own_publishes_and_the_order_is_kept(device, provider):
    link = device.connect()
    token = link.register()
    mine = [
        (Property.PAYLOAD_FORMAT, 1), (Property.CONTENT_TYPE, "text/mine"), (Property.RESPONSE_TOPIC, "answer"),
        (Property.CORRELATION_DATA, b"mine"), mqtt.user("mine", "1"),
    ]
    assert link.publish(SETTINGS, ENABLED, properties=mine).reason == 0
    orders = set()
    for _ in range(2):
        assert provider.push(token, collapse_id="score", push_type="alert").status == 200
        found = link.notification()
        assert found.value(Property.CONTENT_TYPE) != "text/mine" and "mine" not in found.user
        assert found.value(Property.RESPONSE_TOPIC) is found.value(Property.CORRELATION_DATA) is None
        orders.add(tuple(found.user))
    assert len(orders) == 1


def test_MQTT_3_3_2_5_an_expired_publish_is_not_delivered(device, other, provider):
    link = device.connect()
    token = link.register()
    link.leave()
    expiration = int(time.time()) + 1
    assert provider.push(token, expiration=expiration).status == 200
    other.connect().quiet(expiration + 0.2 - time.time())
    link = device.connect()
    link.register()
    link.quiet()


def test_MQTT_3_3_2_6_the_message_expiry_interval_is_the_remaining_time(device, other, provider):
    link = device.connect()
    token = link.register()
    link.leave()
    expiration = int(time.time()) + 100
    assert provider.push(token, expiration=expiration).status == 200
    other.connect().quiet(1.1)
    link = device.connect()
    before = time.time()
    link.register()
    left, after = link.notification().value(Property.MESSAGE_EXPIRY), time.time()
    assert 0 < left <= 99 and expiration - after - 1 <= left <= expiration - before + 1


def test_MQTT_3_3_4_2_overlapping_filters_give_one_copy_at_the_highest_qos(device, provider):
    link = device.connect()
    link.subscribe((f"apps/{TOPIC}/#", 0), (f"apps/{TOPIC}", 1))
    token = link.token()
    assert provider.push(token).status == 200
    assert link.notification().qos == 1
    link.quiet()


def in_flight(link, provider, apps, count):
    """Sends one notification to each app, and returns the PUBLISHes that come without an acknowledgement."""
    for app, token in zip(apps, link.register(*apps)):
        assert provider.push(token, topic=app).status == 200
    found = [link.expect(Kind.PUBLISH) for _ in range(count)]
    link.quiet()
    return found


def test_MQTT_3_3_4_9_no_more_than_the_receive_maximum_is_in_flight(device, provider):
    link = device.connect(properties=[(Property.RECEIVE_MAXIMUM, 2)])
    waiting = in_flight(link, provider, APPS[:6], 2)
    for _ in range(4):
        link.acknowledge(waiting.pop(0))
        waiting.append(link.expect(Kind.PUBLISH))
        link.settled()
    link.acknowledge(*waiting)
    link.quiet()


def test_MQTT_3_3_4_10_and_4_9_0_3_other_packets_are_answered_while_the_window_is_full(device, provider):
    link = device.connect(properties=[(Property.RECEIVE_MAXIMUM, 1)])
    (first,) = in_flight(link, provider, APPS[:3], 1)
    link.settled()
    assert link.subscribe("foreign/topic").reasons == (Reason.NOT_AUTHORIZED,)
    assert link.publish(f"apps/{APPS[0]}/settings", ENABLED).reason == 0
    link.acknowledge(first)
    link.expect(Kind.PUBLISH)


def test_MQTT_4_9_0_1_the_send_quota_is_the_receive_maximum(device, provider):
    link = device.connect(properties=[(Property.RECEIVE_MAXIMUM, 3)])
    in_flight(link, provider, APPS[:6], 3)


def test_MQTT_4_9_0_2_a_token_counts_against_the_receive_maximum_too(device):
    link = device.connect(properties=[(Property.RECEIVE_MAXIMUM, 1)])
    link.subscribe(*(f"apps/{app}/token" for app in APPS[:3]))
    for _ in range(3):
        found = link.expect(Kind.PUBLISH)
        link.quiet(0.1)
        link.acknowledge(found)


def test_MQTT_2_2_1_4_and_4_3_2_1_and_2_packet_identifiers_in_flight_are_not_zero_and_all_different(device, provider):
    link = device.connect()
    found = in_flight(link, provider, APPS, len(APPS))
    assert len({publish.packet_id for publish in found}) == len(APPS)
    assert all(publish.qos == 1 and not publish.duplicate for publish in found)


def test_MQTT_4_3_1_1_a_publish_at_qos_0_is_sent_once_without_acknowledgement(device, provider):
    link = device.connect()
    token = link.register(qos=0)
    assert provider.push(token).status == 200
    found = link.notification()
    assert found.qos == 0 and found.packet_id is None
    link.leave()
    link = device.connect()
    link.register()
    link.quiet()


def test_MQTT_4_3_2_3_a_publish_is_unacknowledged_until_its_own_puback_comes(device, provider):
    link = device.stay()
    token = link.register()
    assert provider.push(token, b'{"n":1}').status == 200
    found = link.notification(acknowledge=False)
    # An acknowledgement of something else, which a server may also take for a protocol error (§4.13).
    link.send(mqtt.puback(found.packet_id % 65535 + 1), mqtt.disconnect())
    link.until_closed()
    assert device.stay().notification().payload == b'{"n":1}'


def test_MQTT_4_4_0_1_an_unacknowledged_publish_is_sent_again_under_its_identifier(device, provider):
    link = device.stay()
    before = in_flight(link, provider, APPS[:3], 3)
    link.leave()
    link = device.stay()
    after = [link.expect(Kind.PUBLISH) for _ in before]
    assert {(found.topic, found.packet_id) for found in after} == {(found.topic, found.packet_id) for found in before}
    assert all(found.duplicate for found in after)


def test_MQTT_4_4_0_1_nothing_is_sent_again_on_the_same_connection(device, provider):
    link = device.connect()
    token = link.register()
    assert provider.push(token).status == 200
    link.notification(acknowledge=False)
    link.quiet(0.5)
    # Neither a new SUBSCRIBE, nor the next notification brings it again.
    link.subscribe(f"apps/{TOPIC}")
    assert provider.push(token, b'{"next":1}').status == 200
    assert link.notification().payload == b'{"next":1}'
    link.quiet()


@pytest.mark.parametrize("reason", [0x80, 0x83, 0x87, 0x90, 0x97, 0x99], ids=hex)
def test_MQTT_4_4_0_2_a_puback_that_refuses_is_an_acknowledgement_too(device, provider, reason):
    link = device.stay()
    token = link.register()
    assert provider.push(token).status == 200
    link.send(mqtt.puback(link.notification(acknowledge=False).packet_id, reason=reason))
    link.leave()
    device.stay().quiet()


@pytest.mark.parametrize("properties", [[], [(Property.REASON_STRING, "seen")], [mqtt.user("a", "b")]], ids=str)
def test_MQTT_3_4_2_1_a_puback_may_have_a_reason_and_properties(device, provider, properties):
    link = device.stay()
    token = link.register()
    assert provider.push(token).status == 200
    link.send(mqtt.puback(link.notification(acknowledge=False).packet_id, reason=0, properties=properties))
    link.leave()
    device.stay().quiet()


def test_MQTT_4_6_0_5_and_6_notifications_for_a_topic_come_in_the_order_of_the_provider(device, provider):
    link = device.connect()
    token = link.register_and_receive(provider)
    # Fewer than the service holds for a connection: all are sent.
    streams = [provider.send(token, {"n": number}) for number in range(50)]
    found = [link.notification().payload for _ in streams]
    assert found == [b'{"n":%d}' % number for number in range(50)]
    assert {provider.answer(stream).status for stream in streams} == {200}


# To the service.


def test_MQTT_3_3_1_4_both_qos_bits_close(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, packet_id=1, flags=0b0110))
    link.refused(Reason.MALFORMED)


def test_MQTT_3_2_2_11_a_publish_at_qos_2_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=2, packet_id=1))
    link.refused(Reason.QOS)


def test_MQTT_3_2_2_14_a_retained_publish_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=1, packet_id=1, retain=True))
    link.refused(Reason.RETAIN)


@pytest.mark.parametrize("topic", [f"apps/{TOPIC}/#", "apps/+/settings", "#", "+", f"apps/{TOPIC}/settings+"])
def test_MQTT_3_3_2_2_and_4_7_0_1_a_wildcard_in_a_topic_name_closes(steady, topic):
    link = steady.connect()
    link.send(mqtt.publish(topic, ENABLED, qos=1, packet_id=1))
    link.refused(Reason.TOPIC_NAME, *FAULTY)


def test_MQTT_4_7_3_1_an_empty_topic_name_without_an_alias_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish("", ENABLED, qos=1, packet_id=1))
    link.refused(Reason.PROTOCOL_ERROR, Reason.TOPIC_NAME)


@pytest.mark.parametrize("alias", [0, 1, 65535])
def test_MQTT_3_3_2_12_a_topic_alias_where_none_is_accepted_closes(steady, alias):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=1, packet_id=1, properties=[(Property.TOPIC_ALIAS, alias)]))
    link.refused(Reason.TOPIC_ALIAS)


def test_MQTT_3_3_2_14_a_wildcard_in_a_response_topic_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=1, packet_id=1, properties=[(Property.RESPONSE_TOPIC, "a/#")]))
    link.refused(Reason.TOPIC_NAME, *FAULTY)


def test_MQTT_3_3_4_6_a_subscription_identifier_from_a_client_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=1, packet_id=1, properties=[(Property.SUBSCRIPTION_ID, 1)]))
    link.refused(*FAULTY)


def test_MQTT_section_3_3_2_3_2_an_unknown_payload_format_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, ENABLED, qos=1, packet_id=1, properties=[(Property.PAYLOAD_FORMAT, 2)]))
    link.refused(*FAULTY)


def test_a_publish_with_every_property_is_read(device):
    link = device.connect()
    link.register()
    everything = [
        (Property.PAYLOAD_FORMAT, 1), (Property.MESSAGE_EXPIRY, 60), (Property.CONTENT_TYPE, "application/json"),
        (Property.RESPONSE_TOPIC, "answer"), (Property.CORRELATION_DATA, b"\0\1"), mqtt.user("a", "b"),
    ]
    assert link.publish(SETTINGS, ENABLED, properties=everything).reason == 0


def test_MQTT_3_3_4_1_and_4_3_2_4_a_publish_at_qos_1_is_acknowledged(device):
    link = device.connect()
    link.register()
    # `publish` sees to the packet identifier.
    assert link.publish(SETTINGS, ENABLED).reason == 0


def test_MQTT_4_3_2_5_and_3_3_1_3_an_identifier_is_free_after_its_puback_despite_dup(device, provider):
    link = device.connect()
    token = link.register()
    for enabled, duplicate in ((b"false", False), (b"true", True)):
        body = b'{"enabled":' + enabled + b"}"
        link.send(mqtt.publish(SETTINGS, body, qos=1, packet_id=9, duplicate=duplicate))
        assert link.expect(Kind.PUBACK).packet_id == 9
    assert provider.push(token).status == 200
    # The service sets DUP independently.
    assert not link.notification().duplicate


def test_MQTT_4_3_1_1_a_publish_at_qos_0_is_not_answered(device):
    link = device.connect()
    link.register()
    link.send(mqtt.publish(SETTINGS, ENABLED))
    link.settled()


@pytest.mark.parametrize(
    "topic",
    ["foreign/topic", f"apps/{TOPIC}", f"apps/{TOPIC}/other", f"apps/{TOPIC}/settings/", "device", "device/name",
     "$SYS/broker", f"/apps/{TOPIC}/settings", f"apps//{TOPIC}/settings", f"APPS/{TOPIC}/settings", "channels/a/b"],
)
def test_MQTT_section_3_3_5_a_publish_to_a_topic_of_another_is_refused_by_its_puback(device, provider, topic):
    link = device.connect()
    token = link.register()
    assert link.publish(topic, b'{"enabled":false}').reason in (Reason.NOT_AUTHORIZED, Reason.TOPIC_NAME)
    # It reaches nobody, and changes nothing.
    assert provider.push(token, b'{"n":1}').status == 200
    assert link.notification().payload == b'{"n":1}'


def test_MQTT_3_2_2_15_a_packet_beyond_the_maximum_size_closes(steady):
    link = steady.connect()
    link.send(mqtt.publish(SETTINGS, b"x" * (1 << 20), qos=1, packet_id=1))
    link.refused(Reason.PACKET_TOO_LARGE)


def test_MQTT_3_4_2_1_a_puback_with_an_unknown_reason_closes(steady):
    link = steady.connect()
    link.send(mqtt.packet(Kind.PUBACK, mqtt.u16(1) + b"\x55"))
    link.refused(*FAULTY)


@pytest.mark.parametrize(
    "kind, flags, answer",
    [(Kind.PUBREC, 0, Kind.PUBREL), (Kind.PUBREL, 2, Kind.PUBCOMP), (Kind.PUBCOMP, 0, None)],
    ids=["PUBREC", "PUBREL", "PUBCOMP"],
)
def test_MQTT_section_3_5_and_3_6_packets_of_qos_2_for_an_unknown_identifier_are_harmless(steady, kind, flags, answer):
    link = steady.connect()
    link.send(mqtt.packet(kind, mqtt.u16(7), flags=flags), mqtt.PINGREQ)
    # "Packet Identifier not found" (0x92; `mqtt_packets` sees to it), or the end of the connection (section 4.13).
    try:
        found = [link.read().kind for _ in range(1 + bool(answer))]
    except Closed:
        return
    assert found in ([answer, Kind.PINGRESP], [Kind.PINGRESP], [Kind.DISCONNECT])
