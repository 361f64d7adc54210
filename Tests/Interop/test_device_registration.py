"""The device contract: registration and removal of an app, and its token.

Each test is a sentence of the contract.
"""

import re
import time

import pytest

import mqtt_packets as mqtt
from mqtt_device import LONG, MAIL
from mqtt_packets import Kind, Reason
from provider import Provider
from service import TOPIC

FILTERS = [f"apps/{TOPIC}/#", f"apps/{TOPIC}", f"apps/{TOPIC}/token"]
HELLO = b'{"aps":{"alert":"hello"}}'


@pytest.fixture
def registered(device, version):
    """A device that is connected and has registered: its connection and its token."""
    link = device.stay(version)
    return link, link.register()


# Filters that make a registration


@pytest.mark.parametrize("name", FILTERS)
def test_each_of_the_three_filters_makes_the_registration(device, version, name):
    link = device.connect(version)
    assert link.subscribe(name).reasons == (1,)
    if name != f"apps/{TOPIC}":
        link.token()
    link.leave()
    # Only of a registration does an UNSUBSCRIBE after a clean start say that there was one.
    assert device.connect().unsubscribe(name).reasons == (Reason.SUCCESS,)


@pytest.mark.parametrize("name", FILTERS)
def test_each_of_the_three_filters_finds_the_registration(device, version, name, provider):
    link = device.connect(version)
    token = link.register()
    link.leave()
    link = device.connect(version)
    link.subscribe(name)
    if name != f"apps/{TOPIC}":
        assert link.token() == token
    assert provider.push(token).status == 200


def test_apps_topic_number_sign_brings_token_and_notifications(device, version, provider):
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}/#")
    assert provider.push(link.token(), HELLO).status == 200
    assert link.notification().payload == HELLO


def test_apps_topic_brings_notifications_and_no_token(device, version, provider):
    link = device.connect(version)
    token = link.register()
    link.leave()
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}")
    link.quiet()
    assert provider.push(token, HELLO).status == 200
    assert link.notification().payload == HELLO


def test_apps_topic_token_brings_the_token_and_no_notifications(device, version, provider):
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}/token")
    token = link.token()
    assert provider.push(token, HELLO).status == 200
    link.quiet()
    # It waits for a filter that wants it.
    link.subscribe(f"apps/{TOPIC}")
    assert link.notification().payload == HELLO


def test_a_suffix_of_the_topic_is_another_app(device, version, provider):
    link = device.connect(version)
    token, voip = link.register(TOPIC, f"{TOPIC}.voip")
    assert token != voip
    assert provider.push(voip, HELLO, topic=f"{TOPIC}.voip", push_type="voip").status == 200
    assert link.notification(f"{TOPIC}.voip").payload == HELLO
    assert provider.push(voip, HELLO).reason == "DeviceTokenNotForTopic"


def test_the_server_name_selects_the_environment(shared, device, provider, provider_pem):
    link = device.connect()
    production = link.register()
    link.leave()
    link = device.connect(name="sandbox.localhost")
    sandbox = link.register()
    assert sandbox != production
    assert provider.push(sandbox, HELLO).reason == "BadDeviceToken"
    with Provider(shared, provider_pem, name="sandbox.localhost") as tester:
        assert tester.push(production, HELLO).reason == "BadDeviceToken"
        assert tester.push(sandbox, HELLO).status == 200
    assert link.notification().payload == HELLO


# The token.


def test_the_token_comes_after_the_suback(device, version):
    link = device.connect(version)
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}/#", 1), version=version))
    assert [link.read().kind for _ in range(2)] == [Kind.SUBACK, Kind.PUBLISH]


def test_the_token_is_lower_case_hex(registered):
    _, token = registered
    assert re.fullmatch("[0-9a-f]{64}", token)


def test_the_token_is_not_retained_and_comes_at_the_qos_of_its_subscription(device, version):
    link = device.connect(version)
    for qos in (0, 1):
        link.subscribe(f"apps/{TOPIC}/token", qos=qos)
        found = link.next(f"apps/{TOPIC}/token")
        assert (found.qos, found.retain, found.duplicate) == (qos, False, False)


def test_the_token_comes_after_every_suback_and_is_always_the_same(device, version):
    tokens = set()
    for _ in range(2):
        link = device.connect(version)
        for name in (f"apps/{TOPIC}/#", f"apps/{TOPIC}/token", f"apps/{TOPIC}/#"):
            link.subscribe(name)
            tokens.add(link.token())
        link.leave()
    assert len(tokens) == 1


def test_two_filters_of_one_subscribe_bring_one_token(device, version):
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}/#", f"apps/{TOPIC}/token")
    link.token()
    link.quiet()


def test_another_device_and_another_app_have_other_tokens(device, other):
    tokens = device.connect().register(TOPIC, MAIL) + other.connect().register(TOPIC, MAIL)
    assert len(set(tokens)) == 4


# The device presents the token that it holds.


def present(link, token, topic=TOPIC):
    """Presents by PUBLISH at QoS 1, and returns the packet identifier."""
    number = link.packet_id()
    link.send(mqtt.publish(f"apps/{topic}/token", token.encode(), link.version, qos=1, packet_id=number))
    return number


def test_its_own_token_is_accepted_and_never_sent_back(registered):
    link, token = registered
    assert link.publish(f"apps/{TOPIC}/token", token.encode()).reason == 0
    link.quiet()


def test_its_own_token_may_be_presented_at_qos_0(registered):
    link, token = registered
    link.send(mqtt.publish(f"apps/{TOPIC}/token", token.encode(), link.version))
    link.caught_up()


def test_its_own_token_may_be_presented_before_anything_is_subscribed(device, version, registered):
    link, token = registered
    link.leave()
    link = device.connect(version)
    assert link.publish(f"apps/{TOPIC}/token", token.encode()).reason == 0
    link.settled()


def test_its_own_token_may_be_presented_on_subscribe(device):
    link = device.connect()
    token = link.register()
    assert link.subscribe(f"apps/{TOPIC}/#", properties=[mqtt.user("token", token)]).reasons == (1,)
    assert link.token() == token


FORGED = {
    "random": "5f" * 32,
    "zeroes": "00" * 32,
    "short": "5f" * 8,
    "long": "5f" * 100,
    "empty": "",
    "not-hex": "x" * 64,
    "odd": "5" * 63,
    "huge": "5f" * 4000,
}


@pytest.mark.parametrize("token", FORGED.values(), ids=FORGED)
def test_a_forged_token_closes_the_connection(registered, token):
    link, _ = registered
    present(link, token)
    link.refused(Reason.NOT_AUTHORIZED)


@pytest.mark.parametrize("token", FORGED.values(), ids=FORGED)
def test_a_forged_token_on_subscribe_closes_the_connection(device, token):
    link = device.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}/#", 1), properties=[mqtt.user("token", token)]))
    link.refused(Reason.NOT_AUTHORIZED)


def test_a_token_with_one_changed_bit_closes_the_connection(registered):
    link, token = registered
    present(link, f"{int(token, 16) ^ 1:064x}")
    link.refused(Reason.NOT_AUTHORIZED)


def test_a_foreign_token_closes_the_connection(registered, other):
    foreign = other.connect().register()
    link, _ = registered
    present(link, foreign)
    link.refused(Reason.NOT_AUTHORIZED)


def test_a_foreign_token_on_subscribe_closes_the_connection(device, other):
    foreign = other.connect().register()
    link = device.connect()
    link.send(mqtt.subscribe(1, (f"apps/{TOPIC}/#", 1), properties=[mqtt.user("token", foreign)]))
    link.refused(Reason.NOT_AUTHORIZED)


def test_a_token_of_another_app_of_the_device_is_answered_like_a_stale_one(device, version):
    link = device.connect(version)
    token, mail = link.register(TOPIC, MAIL)
    present(link, token, MAIL)
    answers = [link.read(), link.read()]
    assert [found.payload.decode() for found in answers if found.kind == Kind.PUBLISH] == [mail]


def test_a_forged_presentation_changes_nothing_about_the_registration(device, version, registered, provider):
    link, token = registered
    present(link, FORGED["random"])
    link.until_closed()
    assert provider.push(token, HELLO).status == 200
    assert device.stay(version).notification().payload == HELLO


@pytest.fixture
def reinstalled(device, version):
    """An app that was removed and installed again: the connection, the token of before and that of now."""
    link = device.connect(version)
    stale = link.register()
    link.unsubscribe(f"apps/{TOPIC}/#")
    return link, stale, link.register()


def test_a_stale_token_is_answered_with_the_current_one(reinstalled):
    link, stale, current = reinstalled
    number = present(link, stale)
    answers = [link.read(), link.read()]
    (puback,) = (found for found in answers if found.kind == Kind.PUBACK)
    (token,) = (found for found in answers if found.kind == Kind.PUBLISH)
    assert puback.packet_id == number
    assert (token.topic, token.payload.decode()) == (f"apps/{TOPIC}/token", current)


def test_a_stale_token_on_subscribe_is_answered_with_the_current_one(device):
    link = device.connect()
    stale = link.register()
    link.unsubscribe(f"apps/{TOPIC}/#")
    assert link.subscribe(f"apps/{TOPIC}/#", properties=[mqtt.user("token", stale)]).reasons == (1,)
    assert link.token() != stale


def test_a_stale_token_without_a_filter_for_the_current_one_closes_the_connection(reinstalled, device, version):
    link, stale, _ = reinstalled
    link.leave()
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}")
    present(link, stale)
    link.refused(Reason.NOT_AUTHORIZED)


def test_the_token_of_a_removed_app_closes_the_connection(device, version):
    link = device.connect(version)
    token = link.register()
    link.unsubscribe(f"apps/{TOPIC}/#")
    present(link, token)
    link.refused(Reason.NOT_AUTHORIZED)


# The app is removed.


def unregistered(provider, token, since):
    """The next push is refused with the time of the removal, in milliseconds; that time."""
    answer = provider.push(token, HELLO)
    assert (answer.status, answer.reason) == (410, "Unregistered")
    assert since - 1 <= answer.timestamp <= time.time() * 1000 + 1
    return answer.timestamp


def test_unsubscribe_of_the_only_filter_kills_the_token(registered, provider):
    link, token = registered
    assert provider.push(token, HELLO).status == 200
    link.notification()
    before = time.time() * 1000
    link.unsubscribe(f"apps/{TOPIC}/#")
    first = unregistered(provider, token, before)
    # It is the time of the removal, and not of the question.
    assert unregistered(provider, token, before) == first


def test_only_unsubscribe_of_the_last_of_the_three_filters_kills_the_token(device, version, provider):
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}/token")
    token = link.token()
    link.subscribe(f"apps/{TOPIC}")
    link.subscribe(f"apps/{TOPIC}/#")
    assert link.token() == token
    for name in (f"apps/{TOPIC}/token", f"apps/{TOPIC}/#"):
        link.unsubscribe(name)
        assert provider.push(token, HELLO).status == 200
        link.notification()
    before = time.time() * 1000
    link.unsubscribe(f"apps/{TOPIC}")
    unregistered(provider, token, before)


def test_all_filters_of_an_app_may_go_in_one_unsubscribe(device, version, provider):
    link = device.connect(version)
    link.subscribe(f"apps/{TOPIC}", f"apps/{TOPIC}/token")
    token = link.token()
    before = time.time() * 1000
    link.unsubscribe(f"apps/{TOPIC}", f"apps/{TOPIC}/token")
    unregistered(provider, token, before)


def test_another_app_stays_registered(device, version, provider):
    link = device.connect(version)
    _, mail = link.register(TOPIC, MAIL)
    link.unsubscribe(f"apps/{TOPIC}/#")
    assert provider.push(mail, HELLO, topic=MAIL).status == 200
    assert link.notification(MAIL).payload == HELLO


def test_a_reinstalled_app_gets_a_new_token_and_the_old_one_stays_dead(device, version, provider):
    link = device.connect(version)
    old = link.register()
    before = time.time() * 1000
    link.unsubscribe(f"apps/{TOPIC}/#")
    died = unregistered(provider, old, before)
    new = link.register()
    assert new != old
    assert unregistered(provider, old, before) == died
    assert provider.push(new, HELLO).status == 200
    assert link.notification().payload == HELLO


def test_waiting_notifications_are_removed_with_the_app(device, version, provider):
    link = device.stay(version)
    token = link.register()
    link.leave()
    assert provider.push(token, HELLO).status == 200
    # The UNSUBSCRIBE may cross the delivery.
    link = device.connect(version)
    link.unsubscribe(f"apps/{TOPIC}/#")
    link.register()
    link.quiet()


def test_unsubscribe_after_a_clean_start_removes_the_app(device, provider):
    link = device.stay()
    token = link.register()
    link.leave()
    link = device.connect(clean=True)
    before = time.time() * 1000
    assert link.unsubscribe(f"apps/{TOPIC}/#").reasons == (Reason.SUCCESS,)
    unregistered(provider, token, before)
    assert link.unsubscribe(f"apps/{TOPIC}/#").reasons == (Reason.NO_SUBSCRIPTION_EXISTED,)


def test_unsubscribe_after_a_clean_session_removes_the_app_in_3_1_1(device, provider):
    link = device.stay(4)
    token = link.register()
    link.leave()
    before = time.time() * 1000
    device.connect(4).unsubscribe(f"apps/{TOPIC}/#")
    unregistered(provider, token, before)


def test_unsubscribe_without_a_subscription_is_reported(device):
    link = device.connect()
    for name in FILTERS:
        assert link.unsubscribe(name).reasons == (Reason.NO_SUBSCRIPTION_EXISTED,)


# Disconnecting removes nothing.

WAYS = {
    "DISCONNECT": lambda link: link.leave(),
    "connection-lost": lambda link: link.close(),
    "malformed-packet": lambda link: (link.send(b"\0\0"), link.until_closed()),
    "half-a-packet": lambda link: (link.send(b"\x82\x7f\0"), link.close()),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_apps_and_notifications_survive_any_disconnect(device, registered, version, way, provider):
    link, token = registered
    way(link)
    assert provider.push(token, HELLO).status == 200
    link = device.connect(version)
    assert link.register() == token
    assert link.notification().payload == HELLO


def test_a_clean_start_drops_no_registration(device, version, provider):
    link = device.connect(version)
    token = link.register()
    for _ in range(2):
        link.leave()
        link = device.connect(version, expiry=LONG)
    assert provider.push(token, HELLO).status == 200
    assert link.register() == token
    assert link.notification().payload == HELLO
