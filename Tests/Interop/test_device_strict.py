"""Devices whose client ends the connection at a message: strict clients do so at a packet that they cannot read (MQTT 5 §4.13)."""

import json
import socket

import pytest

from channels import LIVE, create, filter_of, publish, soon
from mqtt_device import MAIL
from mqtt_packets import Kind, Reason
from mqtt_wire import Silence
from parties import new_id
from provider import Provider
from service import TOPIC, eventually

LINE = "a device's client ends its connection each time this comes"
REFUSED = "refused by the device"
#: Connections after which the message is withheld.
PATIENT, NAMED = 5, 2


def drop(link):
    """Closes the connection as a program that fails, and waits until the service has seen it."""
    link.socket.shutdown(socket.SHUT_WR)
    link.until_closed()
    link.close()


def name_the_packet(link):
    link.leave(Reason.MALFORMED)


def is_withheld(service, device):
    return [line for line in service.lines if LINE in line and f"device={device.id}" in line]


def ends(service, device, topic, connect, end):
    """Ends each connection at the message, until the log says that it is withheld. The number of connections that it ended."""
    count = 0
    while count < 40:
        link = connect()
        while True:
            try:
                found = link.read(0.2)
            except Silence:
                if is_withheld(service, device):
                    link.close()
                    return count
                continue
            if found.kind == Kind.PUBLISH and found.topic == topic:
                break
            link.acknowledge(found)
        end(link)
        count += 1
    raise AssertionError("the message comes again and again")


@pytest.fixture
def away(device, version):
    """The token of an app of a device that went away, and keeps its session."""
    link = device.stay(version)
    token = link.register()
    link.leave()
    return token


def words(service, id):
    return [line["state"] for line in service.journal(id)]


def test_a_notification_that_ends_its_client_is_refused_and_a_newer_one_is_sent(
    shared, provider, device, away, version
):
    id = new_id()
    assert provider.push(away, {"aps": {"alert": "poison"}}, id=id).status == 200
    # An end that a busy machine delays counts nothing.
    assert ends(shared, device, f"apps/{TOPIC}", lambda: device.stay(version), drop) >= PATIENT
    eventually(lambda: REFUSED in words(shared, id), what="the journal's line")
    (line,) = is_withheld(shared, device)
    assert id.lower() in line.lower() and "warning" in line and "poison" not in line and away not in line
    link = device.stay(version)
    assert provider.push(away, {"aps": {"alert": "good"}}).status == 200
    assert json.loads(link.notification().payload) == {"aps": {"alert": "good"}}


def test_a_disconnect_that_calls_the_packet_malformed_counts_more(shared, provider, device):
    link = device.stay()
    token = link.register()
    link.leave()
    id = new_id()
    assert provider.push(token, id=id).status == 200
    assert ends(shared, device, f"apps/{TOPIC}", device.stay, name_the_packet) == NAMED
    eventually(lambda: REFUSED in words(shared, id), what="the journal's line")


def test_what_comes_beside_it_arrives(shared, provider, device):
    """A client may read the message before it has acknowledged the one that came with it."""
    link = device.stay()
    good, poison = link.register(TOPIC, MAIL)
    link.leave()
    fine = new_id()
    assert provider.push(good, id=fine).status == 200
    assert provider.push(poison, topic=MAIL).status == 200
    link = device.stay()
    for _ in range(2):
        link.next(acknowledge=False)
    drop(link)
    # Now one comes at a time, and the other is acknowledged, whichever is the first.
    assert ends(shared, device, f"apps/{MAIL}", device.stay, drop) >= PATIENT
    device.stay().caught_up()
    eventually(lambda: "delivered from storage" in words(shared, fine), what="the delivery of the other")


def test_a_device_that_leaves_in_order_keeps_its_notification(provider, device, away, version):
    assert provider.push(away).status == 200
    for _ in range(2 * PATIENT):
        link = device.stay(version)
        link.notification(acknowledge=False)
        link.leave()
    device.stay(version).notification()


@pytest.mark.parametrize("qos", [0, 1])
def test_a_broadcast_that_ends_its_client_is_not_sent_again(shared, parties, device, qos):
    with Provider(shared, key=parties.key) as sender:
        channel = create(sender)
        topic = filter_of(channel)
        publish(sender, channel, expiration=soon())

        def connect():
            """Begins a session, which gets the newest broadcast of its channel."""
            link = device.connect()
            assert link.subscribe(topic, qos=qos).reasons == (qos,)
            return link

        assert ends(shared, device, topic, connect, drop) >= PATIENT
        link = connect()
        publish(sender, channel, {**LIVE, "n": 2}, expiration=soon())
        assert json.loads(link.next(topic).payload)["n"] == 2
