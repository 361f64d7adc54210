"""The device contract: the settings of an app, and power saving. Each test is a sentence."""

import pytest

import mqtt_packets as mqtt
from mqtt_device import APPS, MAIL
from mqtt_packets import Kind
from service import TOPIC, eventually

HELLO = b'{"aps":{"alert":"hello"}}'
SILENT = b'{"aps":{"content-available":1}}'
SETTINGS = f"apps/{TOPIC}/settings"
OFF, ON = b'{"enabled":false}', b'{"enabled":true}'
SAVING, SPENDING = b'{"saving":true}', b'{"saving":false}'


@pytest.fixture
def link(device, version):
    return device.stay(version)


def journal(service, answer, words):
    eventually(lambda: words in str(service.journal(answer.id)), what=f"'{words}' in the journal")


# Settings.


def test_a_notification_for_a_switched_off_app_is_accepted_and_not_delivered(shared, link, provider):
    token = link.register()
    assert link.publish(SETTINGS, OFF).reason == 0
    # Background notifications make no exception: the device decides what the setting means.
    for payload, options in ((HELLO, {}), (SILENT, {"push_type": "background", "priority": 5})):
        answer = provider.push(token, payload, **options)
        assert answer.status == 200
        link.quiet()
        journal(shared, answer, "disabled")


def test_switching_on_delivers_new_notifications_only(link, provider):
    token = link.register()
    link.publish(SETTINGS, OFF)
    assert provider.push(token, b'{"n":1}').status == 200
    link.publish(SETTINGS, ON)
    assert provider.push(token, b'{"n":2}').status == 200
    assert link.notification().payload == b'{"n":2}'
    link.quiet()


def test_settings_may_be_published_at_qos_0(link, provider):
    token = link.register()
    link.send(mqtt.publish(SETTINGS, OFF, link.version))
    link.caught_up()
    assert provider.push(token, HELLO).status == 200
    link.quiet()


def test_settings_belong_to_one_app(link, provider):
    token, mail = link.register(TOPIC, MAIL)
    link.publish(SETTINGS, OFF)
    assert provider.push(token, HELLO).status == 200
    assert provider.push(mail, HELLO, topic=MAIL).status == 200
    assert link.notification(MAIL).payload == HELLO
    link.quiet()


def test_settings_outlive_the_connection(device, version, link, provider):
    token = link.register()
    link.publish(SETTINGS, OFF)
    link.leave()
    assert provider.push(token, HELLO).status == 200
    link = device.connect(version)
    assert link.register() == token
    assert provider.push(token, HELLO).status == 200
    link.quiet()


def test_a_waiting_notification_is_not_delivered_to_a_switched_off_app(device, version, link, provider):
    token = link.register()
    link.leave()
    assert provider.push(token, HELLO).status == 200
    link = device.connect(version)
    link.publish(SETTINGS, OFF)
    assert link.register() == token
    link.quiet()


def test_settings_are_not_sent_back(link):
    link.register()
    link.publish(SETTINGS, ON)
    link.quiet()


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"[]", b"null", b"false", b"{}", b'{"enabled":"false"}', b'{"enabled":0}', b'{"enabled":null}',
     b'\xff{"enabled":false}', b'{"enabled":false', b"[" * 4000],
    ids=lambda payload: repr(payload[:40]),
)
def test_invalid_settings_change_nothing(device, version, link, provider, payload):
    token = link.register()
    link.send(mqtt.publish(SETTINGS, payload, version, qos=1, packet_id=77))
    if version == 5:
        found = link.read()
        assert found.kind in (Kind.PUBACK, Kind.DISCONNECT) and found.reason >= 0x80
    link.close()
    link = device.stay(version)
    assert provider.push(token, HELLO).status == 200
    assert link.notification().payload == HELLO


# Power.


@pytest.mark.parametrize("priority", [5, 1])
def test_priorities_5_and_1_wait_while_the_device_saves_power(shared, link, provider, priority):
    token = link.register()
    assert link.publish("device/power", SAVING).reason == 0
    answer = provider.push(token, HELLO, priority=priority)
    assert answer.status == 200
    link.quiet()
    journal(shared, answer, "power")
    assert link.publish("device/power", SPENDING).reason == 0
    assert link.notification().payload == HELLO
    link.quiet()


@pytest.mark.parametrize("priority", [10, None], ids=["10", "absent"])
def test_priority_10_is_delivered_while_the_device_saves_power(link, provider, priority):
    token = link.register()
    link.publish("device/power", SAVING)
    assert provider.push(token, HELLO, priority=priority).status == 200
    assert link.notification().payload == HELLO


def test_power_is_saved_for_all_apps(link, provider):
    tokens = link.register(*APPS[:3])
    link.publish("device/power", SAVING)
    for app, token in zip(APPS, tokens):
        assert provider.push(token, HELLO, topic=app, priority=5).status == 200
    link.quiet()
    link.send(mqtt.publish("device/power", SPENDING, link.version))
    assert {link.expect(Kind.PUBLISH).topic for _ in tokens} == {f"apps/{app}" for app in APPS[:3]}


def test_the_newest_notification_held_for_power_is_delivered(link, provider):
    token = link.register()
    link.publish("device/power", SAVING)
    for number in range(3):
        assert provider.push(token, {"n": number}, priority=5).status == 200
    link.publish("device/power", SPENDING)
    assert link.notification().payload == b'{"n":2}'
    link.quiet()


def test_an_urgent_notification_replaces_older_held_ones(link, provider):
    token = link.register()
    link.publish("device/power", SAVING)
    assert provider.push(token, b'{"n":1}', priority=5).status == 200
    assert provider.push(token, b'{"n":2}', priority=10).status == 200
    assert link.notification().payload == b'{"n":2}'
    link.publish("device/power", SPENDING)
    link.quiet()


def test_an_unstored_notification_does_not_wait_for_power(link, provider):
    token = link.register()
    link.publish("device/power", SAVING)
    assert provider.push(token, HELLO, priority=5, expiration=0).status == 200
    link.publish("device/power", SPENDING)
    link.quiet()


def test_power_saving_lasts_until_the_next_report_across_connections(device, version, link, provider):
    token = link.register()
    link.publish("device/power", SAVING)
    link.leave()
    assert provider.push(token, HELLO, priority=5).status == 200
    link = device.stay(version)
    link.quiet()
    link.publish("device/power", SPENDING)
    assert link.notification().payload == HELLO


def test_a_power_report_applies_to_one_device(link, other, provider):
    link.register()
    link.publish("device/power", SAVING)
    second = other.connect()
    token = second.register()
    assert provider.push(token, HELLO, priority=5).status == 200
    assert second.notification().payload == HELLO


@pytest.mark.parametrize("payload", [b"", b"{", b"true", b"{}", b'{"saving":"true"}', b'{"saving":1}'], ids=repr)
def test_an_invalid_power_report_changes_nothing(device, version, link, provider, payload):
    token = link.register()
    link.send(mqtt.publish("device/power", payload, version, qos=1, packet_id=77))
    if version == 5:
        found = link.read()
        assert found.kind in (Kind.PUBACK, Kind.DISCONNECT) and found.reason >= 0x80
    link.close()
    link = device.stay(version)
    assert provider.push(token, HELLO, priority=5).status == 200
    assert link.notification().payload == HELLO
