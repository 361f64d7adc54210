"""MQTT 5.0, sections 3.8 to 3.11, 4.7 and 4.8: subscriptions. A test is named by the statement that it checks.

A device may subscribe to the filters of the contract and to nothing else: each other one is refused by its reason code.
"""

import json

import pytest

import mqtt_packets as mqtt
from mqtt_device import APPS, LONG, MAIL
from mqtt_packets import Kind, Property, Reason
from service import TOPIC, eventually

FAULTY = (Reason.MALFORMED, Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize("flags", [0, 1, 3, 10])
def test_MQTT_3_8_1_1_subscribe_with_other_flags_closes(steady, flags):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", 1), flags=flags))
    link.refused(Reason.MALFORMED)


def test_MQTT_3_8_3_2_subscribe_without_a_filter_closes(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1))
    link.refused(*FAULTY)


def test_MQTT_3_8_3_4_no_local_on_a_shared_subscription_closes(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"$share/group/apps/{TOPIC}", 0b101)))
    link.refused(Reason.PROTOCOL_ERROR, Reason.SHARED)


@pytest.mark.parametrize("options", [0b0100_0001, 0b1000_0001, 0b1100_0001])
def test_MQTT_3_8_3_5_reserved_subscription_options_close(steady, options):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", options)))
    link.refused(Reason.MALFORMED, Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize("options", [0b0000_0011, 0b0011_0001], ids=["QoS-3", "retain-handling-3"])
def test_MQTT_section_3_8_3_1_unknown_options_close(steady, options):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", options)))
    link.refused(*FAULTY)


@pytest.mark.parametrize("options", [0b0000_0101, 0b0000_1001, 0b0001_0001, 0b0010_0001, 0b0010_1101])
def test_MQTT_section_3_8_3_1_no_local_retain_as_published_and_retain_handling_are_accepted(device, provider, options):
    link = device.connect()
    assert link.subscribe((f"apps/{TOPIC}/#", options)).reasons == (1,)
    assert provider.push(link.token()).status == 200
    # Nothing here is retained, whatever was asked for.
    assert not link.notification().retain


def test_MQTT_3_8_4_1_and_2_subscribe_is_answered_by_suback_with_its_identifier(steady):
    link = steady.connect()
    # `subscribe` sees to the packet identifier.
    assert link.subscribe("foreign/topic").kind == Kind.SUBACK


def test_MQTT_3_8_4_3_the_same_filter_again_replaces_the_subscription(device, provider):
    link = device.connect()
    token = link.register(qos=0)
    assert link.subscribe(f"apps/{TOPIC}/#", qos=1).reasons == (1,)
    assert link.token() == token
    assert provider.push(token).status == 200
    assert link.notification().qos == 1
    link.quiet()


def test_MQTT_3_8_4_4_replacing_a_subscription_loses_nothing(shared, device, provider):
    link = device.connect()
    token = link.register()
    streams = []
    for number in range(20):
        streams.append(provider.send(token, {"n": number}))
        link.send(mqtt.subscribe(100 + number, (f"apps/{TOPIC}", number % 2)))
    found = []
    while 19 not in found:
        came = link.read()
        if came.kind == Kind.PUBLISH:
            link.acknowledge(came)
            found.append(json.loads(came.payload)["n"])
    assert found == sorted(set(found))
    answers = [provider.answer(stream) for stream in streams]
    assert {answer.status for answer in answers} == {200}
    # At QoS 0 they are stored before they are sent: of several that are stored at once the newest goes out.
    for number in set(range(20)) - set(found):
        eventually(lambda id=answers[number].id: "replaced" in str(shared.journal(id)), what="the line of what replaced it")


def test_MQTT_3_8_4_5_6_and_7_several_filters_have_one_suback_with_a_code_for_each(device):
    link = device.connect()
    filters = [(f"apps/{app}", number % 3) for number, app in enumerate(APPS)]
    suback = link.subscribe(*filters)
    # The granted QoS is 1 at most.
    assert suback.reasons == tuple(min(qos, 1) for _, qos in filters)


def test_MQTT_3_8_4_6_and_3_9_3_1_the_codes_are_in_the_order_of_the_filters(device):
    link = device.connect()
    suback = link.subscribe(
        (f"apps/{TOPIC}", 1), ("foreign/topic", 1), (f"apps/{MAIL}", 0), ("a", 0), (f"apps/{MAIL}/token", 2)
    )
    assert suback.reasons == (1, Reason.NOT_AUTHORIZED, 0, Reason.NOT_AUTHORIZED, 1)
    link.token(MAIL)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_MQTT_3_8_4_8_a_notification_comes_at_the_granted_qos(device, provider, qos):
    link = device.connect()
    granted = link.subscribe(f"apps/{TOPIC}/#", qos=qos).reasons
    assert granted == (min(qos, 1),)
    assert provider.push(link.token()).status == 200
    assert link.notification().qos == min(qos, 1)


@pytest.mark.parametrize(
    "name",
    [
        "a", "apps", f"apps/{TOPIC}/other", f"apps/{TOPIC}/settings", f"apps/{TOPIC}/token/x", "device/power", "will",
        "$SYS/broker/uptime", "$JS.API.INFO", "apps/../x", "apps/.com.example", "apps/com..example",
        "apps/com.example.", "apps/com example", "apps/" + "x" * 201, "channels", "channels/a",
    ],
)
def test_MQTT_3_9_3_2_a_filter_outside_the_contract_is_refused_by_its_code(steady, name):
    link = steady.connect()
    assert link.subscribe(name).reasons == (Reason.NOT_AUTHORIZED,)
    link.settled()


@pytest.mark.parametrize(
    "name",
    ["#", "+", "apps/#", "apps/+", "+/+", f"apps/{TOPIC}/+", f"+/{TOPIC}", "apps/+/token", "$SYS/#", "channels/#"],
)
def test_MQTT_3_9_3_2_a_wildcard_outside_the_contract_is_refused_by_its_code(steady, name):
    link = steady.connect()
    assert link.subscribe(name).reasons in ((Reason.WILDCARD,), (Reason.NOT_AUTHORIZED,))
    link.settled()


@pytest.mark.parametrize(
    "name", [f"apps/{TOPIC}#", "apps/#/token", f"apps/#{TOPIC}", f"apps/{TOPIC}+", "apps/+x/y", "##"]
)
def test_MQTT_4_7_1_1_and_2_a_wildcard_that_does_not_fill_its_level_is_refused(steady, name):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (name, 1)))
    found = link.read()
    # The standard leaves open whether such a filter is the packet's fault or only its own.
    if found.kind == Kind.SUBACK:
        assert found.reasons in ((Reason.TOPIC_FILTER,), (Reason.WILDCARD,), (Reason.NOT_AUTHORIZED,))
    else:
        assert found.kind == Kind.DISCONNECT and found.reason in (Reason.TOPIC_FILTER, *FAULTY)


def test_MQTT_4_7_3_1_an_empty_filter_closes(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1, ("", 1)))
    link.refused(Reason.TOPIC_FILTER, *FAULTY)


@pytest.mark.parametrize("name", ["x" * 65535, "apps/" + "x/" * 32765], ids=["one-level", "many-levels"])
def test_MQTT_4_7_3_3_the_longest_filter_is_read(steady, name):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (name, 1)))
    found = link.read()
    # Or the packet is larger than the service takes, if it said so.
    limit = link.connack.value(Property.MAXIMUM_PACKET_SIZE)
    if found.kind == Kind.SUBACK:
        assert found.reasons == (Reason.NOT_AUTHORIZED,)
    else:
        assert limit is not None and found.reason == Reason.PACKET_TOO_LARGE


@pytest.mark.parametrize(
    "name",
    [f"/apps/{TOPIC}", f"apps/{TOPIC}/", f"apps//{TOPIC}", f"Apps/{TOPIC}", f" apps/{TOPIC}", f"apps/{TOPIC}/Token",
     "apps/com.example.chat\u200b", "apps/com.example.\u0441hat", "apps/com.example.\u212aey"],
)
def test_MQTT_4_7_3_4_nothing_is_normalized(steady, name):
    link = steady.connect()
    assert link.subscribe(name).reasons == (Reason.NOT_AUTHORIZED,)


def test_MQTT_4_7_3_4_topics_that_differ_in_case_are_two_apps(device):
    link = device.connect()
    tokens = link.register(TOPIC, TOPIC.upper())
    assert tokens[0] != tokens[1]


def test_MQTT_4_8_2_1_a_shared_subscription_is_refused(steady):
    # CONNACK says that there are none: DISCONNECT (§3.2.2.3.13), or the code that SUBACK has for it (§3.9.3).
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"$share/group/apps/{TOPIC}", 1)))
    found = link.read()
    assert found.kind in (Kind.SUBACK, Kind.DISCONNECT)
    assert (found.reasons or (found.reason,)) == (Reason.SHARED,)


@pytest.mark.parametrize(
    "name", ["$share", "$share/", "$share//a", "$share/g", "$share/g/", "$share/+/a", "$share/g#/a"]
)
def test_MQTT_4_8_2_2_a_malformed_shared_subscription_is_refused(steady, name):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (name, 1)))
    found = link.read()
    assert found.kind in (Kind.SUBACK, Kind.DISCONNECT)
    assert all(reason >= 0x80 for reason in found.reasons or (found.reason,))


def test_MQTT_section_3_2_2_3_12_a_subscription_identifier_is_refused(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", 1), properties=[(Property.SUBSCRIPTION_ID, 5)]))
    found = link.read()
    assert found.kind in (Kind.SUBACK, Kind.DISCONNECT)
    assert (found.reasons or (found.reason,)) == (Reason.SUBSCRIPTION_ID,)


def test_MQTT_section_3_8_2_1_2_a_subscription_identifier_of_zero_closes(steady):
    link = steady.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}", 1), properties=[(Property.SUBSCRIPTION_ID, 0)]))
    link.refused(Reason.SUBSCRIPTION_ID, *FAULTY)


@pytest.mark.parametrize("flags", [0, 1, 3, 10])
def test_MQTT_3_10_1_1_unsubscribe_with_other_flags_closes(steady, flags):
    link = steady.connect()
    link.send(mqtt.unsubscribe(1, f"apps/{TOPIC}", flags=flags))
    link.refused(Reason.MALFORMED)


def test_MQTT_3_10_3_2_unsubscribe_without_a_filter_closes(steady):
    link = steady.connect()
    link.send(mqtt.unsubscribe(1))
    link.refused(*FAULTY)


def test_MQTT_3_10_4_1_a_subscription_is_found_by_its_exact_filter(device, provider):
    link = device.connect()
    token = link.register()
    # Each matches the same topics or fewer, and is not the filter of the subscription.
    for name in (f"apps/{TOPIC}/+", f"apps/{TOPIC}/#/", f"/apps/{TOPIC}/#"):
        link.send(mqtt.unsubscribe(1, name))
        answer = link.read()
        if answer.kind == Kind.DISCONNECT:
            link = device.connect()
            assert link.register() == token
        else:
            assert answer.reasons[0] != Reason.SUCCESS
    assert provider.push(token).status == 200
    link.notification()


def test_MQTT_3_10_4_2_after_unsuback_nothing_new_is_sent(device, provider):
    link = device.connect()
    link.subscribe(f"apps/{TOPIC}", f"apps/{TOPIC}/token")
    token = link.token()
    # The other filter keeps the app registered.
    assert link.unsubscribe(f"apps/{TOPIC}").reasons == (Reason.SUCCESS,)
    assert provider.push(token).status == 200
    link.quiet()
    link.subscribe(f"apps/{TOPIC}")
    link.notification()


def test_MQTT_3_10_4_3_earlier_publishes_can_still_be_acknowledged(device, provider):
    link = device.stay()
    link.subscribe(f"apps/{TOPIC}", f"apps/{TOPIC}/token")
    token = link.token()
    assert provider.push(token).status == 200
    found = link.notification(acknowledge=False)
    assert link.unsubscribe(f"apps/{TOPIC}").reasons == (Reason.SUCCESS,)
    link.acknowledge(found)
    link.settled()
    link.subscribe(f"apps/{TOPIC}")
    link.quiet()


def test_MQTT_3_10_4_4_and_5_unsubscribe_is_answered_by_unsuback_with_its_identifier(steady):
    # `unsubscribe` sees to the packet identifier.
    assert steady.connect().unsubscribe(f"apps/{TOPIC}").reasons == (Reason.NO_SUBSCRIPTION_EXISTED,)


def test_MQTT_3_10_4_6_and_3_11_3_1_several_filters_have_a_code_for_each_in_their_order(device):
    link = device.connect()
    link.register(TOPIC, MAIL)
    names = (f"apps/{TOPIC}/#", f"apps/{APPS[0]}", f"apps/{MAIL}/#", f"apps/{TOPIC}/#")
    assert link.unsubscribe(*names).reasons == (0, Reason.NO_SUBSCRIPTION_EXISTED, 0, Reason.NO_SUBSCRIPTION_EXISTED)


def test_MQTT_3_11_3_2_a_foreign_filter_has_an_unsuback_code(steady):
    (reason,) = steady.connect().unsubscribe("foreign/topic").reasons
    assert reason in (Reason.NO_SUBSCRIPTION_EXISTED, Reason.NOT_AUTHORIZED, Reason.TOPIC_FILTER)


def test_MQTT_4_1_0_1_a_session_keeps_its_subscriptions_while_it_lives(device, provider):
    tokens = {}
    link = device.connect(expiry=LONG)
    for app in APPS:
        tokens[app] = link.register(app)
    link.leave()
    link = device.stay()
    for app in APPS:
        assert provider.push(tokens[app], topic=app).status == 200
        link.notification(app)


def test_a_session_may_have_hundreds_of_apps_in_one_subscribe(device):
    link = device.connect()
    # Each is on the disk before the next.
    link.timeout = 100
    names = [f"apps/com.example.many{number}" for number in range(200)]
    assert set(link.subscribe(*names).reasons) == {1}
