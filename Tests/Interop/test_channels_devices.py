"""Devices that subscribe to channels: grants, broadcasts, and slow devices."""

import json
import queue
import threading
import urllib.request

import paho.mqtt.client as mqtt_client
import pytest

from channels import LIVE, compact, create, delete, filter_of, publish, soon
from mqtt_packets import Property
from parties import OTHER, new_id
from provider import Device, Provider, tls_context
from service import PATIENCE, TOPIC, eventually


@pytest.fixture(scope="module")
def sender(shared, parties):
    with Provider(shared, key=parties.key) as sender:
        yield sender


@pytest.fixture
def channel(sender):
    return create(sender, 1)


class TestSubscribing:
    def test_an_existing_channel_is_granted(self, device, channel, version):
        link = device.connect(version)
        for qos, granted in [(0, 0), (1, 1), (2, 1)]:
            assert link.subscribe(filter_of(channel), qos=qos).reasons == (granted,)

    def test_unknown_channels_are_refused(self, device, sender, channel, version):
        """Refused, not granted in silence, since nothing would ever come of them."""
        link = device.connect(version)
        gone = create(sender)
        assert delete(sender, gone).status == 204
        other = filter_of(channel)
        wrong = [
            filter_of(gone), filter_of(channel, OTHER), filter_of("A" * 22 + "=="), filter_of("AAAA"), other[:-2],
            filter_of(channel, TOPIC.upper()),
        ]
        suback = link.subscribe(*wrong, other)
        refused = 0x87 if version == 5 else 0x80
        assert suback.reasons == (refused,) * len(wrong) + (1,)
        if version == 5:
            assert dict(suback.properties)[Property.REASON_STRING] == "the app has no such channel in production"

    def test_the_server_name_selects_the_environment(self, device, channel):
        link = device.connect(name="sandbox.localhost")
        assert link.subscribe(filter_of(channel)).reasons == (0x87,)

    def test_a_wildcard_matches_no_channel(self, device, channel, version):
        link = device.connect(version)
        for name in (f"channels/{TOPIC}/#", f"channels/{TOPIC}/+", "channels/#"):
            assert link.subscribe(name).reasons == (0x87 if version == 5 else 0x80,)

    def test_a_channel_registers_no_app(self, shared, device, channel):
        link = device.connect()
        link.subscribe(filter_of(channel))
        link.settled()
        link.unsubscribe(filter_of(channel))
        link.settled()

    def test_devices_cannot_publish_to_a_channel(self, device, channel):
        link = device.connect()
        assert link.publish(filter_of(channel), b"{}").reason == 0x87


class TestReceiving:
    def test_a_broadcast_in_mqtt_5(self, device, sender, channel):
        link = device.connect()
        link.subscribe(filter_of(channel))
        unique = publish(sender, channel, LIVE, priority=5, expiration=soon(600))
        found = link.next(filter_of(channel))
        assert (found.payload, found.qos, found.retain, found.duplicate) == (compact(LIVE), 1, False, False)
        properties = dict(pair for pair in found.properties if pair[0] != Property.USER)
        assert properties[Property.CONTENT_TYPE] == "application/json"
        assert 300 <= properties[Property.MESSAGE_EXPIRY] <= 600
        said = dict(value for name, value in found.properties if name == Property.USER)
        assert said["apns-unique-id"] == unique
        assert (said["apns-push-type"], said["apns-priority"]) == ("liveactivity", "5")
        assert set(said) == {"apns-request-id", "apns-unique-id", "apns-push-type", "apns-priority"}

    @pytest.mark.parametrize("qos", [0, 1])
    def test_a_broadcast_in_either_version(self, device, sender, channel, version, qos):
        link = device.connect(version)
        link.subscribe(filter_of(channel), qos=qos)
        for number in range(3):
            publish(sender, channel, {"n": number})
            found = link.next(filter_of(channel))
            assert (found.payload, found.qos, found.retain) == (compact({"n": number}), qos, False)

    def test_several_channels_and_an_app(self, device, sender):
        first, second = create(sender), create(sender, 0)
        link = device.connect()
        link.register()
        link.subscribe(filter_of(first), filter_of(second))
        publish(sender, second, {"n": 1})
        assert link.next().topic == filter_of(second)
        publish(sender, first, {"n": 2})
        assert link.next().topic == filter_of(first)

    def test_a_late_subscriber_gets_the_newest_stored_broadcast(self, device, sender, channel, version):
        for number in range(3):
            publish(sender, channel, {"n": number}, expiration=soon())
        publish(sender, channel, {"n": 3}, expiration=0)
        link = device.connect(version)
        link.subscribe(filter_of(channel))
        assert link.next(filter_of(channel)).payload == compact({"n": 2})
        link.subscribe(filter_of(channel))
        link.settled()
        publish(sender, channel, {"n": 4})
        assert link.next(filter_of(channel)).payload == compact({"n": 4})

    def test_no_broadcast_after_unsubscribing(self, device, sender, channel):
        link = device.connect()
        link.subscribe(filter_of(channel))
        assert link.unsubscribe(filter_of(channel)).reasons == (0,)
        publish(sender, channel)
        link.settled()

    def test_no_broadcast_after_deletion(self, device, sender, channel):
        link = device.stay()
        link.subscribe(filter_of(channel))
        publish(sender, channel, {"n": 1}, expiration=soon())
        assert delete(sender, channel).status == 204
        assert link.next(filter_of(channel)).payload == compact({"n": 1})
        link.settled()
        link.leave()
        link = device.stay()
        assert link.connack.session_present
        link.settled()

    def test_a_session_gets_only_missed_broadcasts(self, device, sender, channel):
        link = device.stay()
        link.subscribe(filter_of(channel))
        publish(sender, channel, {"n": 1}, expiration=soon())
        assert link.next(filter_of(channel)).payload == compact({"n": 1})
        link.leave()
        link = device.stay()
        link.settled()
        link.leave()
        publish(sender, channel, {"n": 2}, expiration=soon())
        publish(sender, channel, {"n": 3}, expiration=soon())
        link = device.stay()
        assert link.next(filter_of(channel)).payload == compact({"n": 3})
        link.settled()

    def test_a_power_saving_device(self, device, sender, channel):
        link = device.connect()
        link.subscribe(filter_of(channel))
        assert link.publish("device/power", b'{"saving":true}').reason == 0
        for number in range(3):
            publish(sender, channel, {"n": number}, priority=5)
        link.settled()
        assert link.publish("device/power", b'{"saving":false}').reason == 0
        assert link.next(filter_of(channel)).payload == compact({"n": 2})
        assert link.publish("device/power", b'{"saving":true}').reason == 0
        publish(sender, channel, {"n": 3}, priority=1)
        publish(sender, channel, {"n": 4}, priority=10)
        assert link.next(filter_of(channel)).payload == compact({"n": 4})

    def test_the_newest_broadcast_waits_past_the_receive_maximum(self, device, sender, channel):
        link = device.connect(properties=((Property.RECEIVE_MAXIMUM, 2),))
        link.subscribe(filter_of(channel))
        for number in range(6):
            publish(sender, channel, {"n": number})
        first, second = link.next(acknowledge=False), link.next(acknowledge=False)
        assert [first.payload, second.payload] == [compact({"n": 0}), compact({"n": 1})]
        link.settled()
        link.acknowledge(first)
        assert link.next(filter_of(channel)).payload == compact({"n": 5})
        link.acknowledge(second)
        link.settled()

    def test_a_broadcast_larger_than_the_maximum_packet_size(self, device, sender, channel):
        link = device.connect(properties=((Property.MAXIMUM_PACKET_SIZE, 1000),))
        link.subscribe(filter_of(channel))
        publish(sender, channel, {"x": "y" * 2000})
        publish(sender, channel, {"n": 1})
        assert link.next(filter_of(channel)).payload == compact({"n": 1})


class TestOtherClients:
    """Clients that others wrote."""

    @pytest.mark.parametrize("version", ["mqttv5", "mqttv311"])
    def test_mosquitto_sub(self, shared, sender, channel, version):
        name = filter_of(channel)
        with Device(shared, version=version).start("-t", name) as device:
            id = new_id()
            publish(sender, channel, LIVE, apns_request_id=id, expiration=soon())
            found = device.next()
            assert (found.topic, found.json, found.qos, found.retain) == (name, LIVE, 1, False)
            if version == "mqttv5":
                assert found.property("apns-request-id") == id and found.content_type == "application/json"

    def test_paho(self, shared, sender, channel):
        path, identifier = shared.device("paho")
        inbox, ready = queue.Queue(), threading.Event()
        client = mqtt_client.Client(
            mqtt_client.CallbackAPIVersion.VERSION2, client_id=identifier, protocol=mqtt_client.MQTTv5
        )
        client.tls_set_context(tls_context(shared.ca, path, alpn=()))
        client.on_connect = lambda *_: client.subscribe(filter_of(channel), qos=1)
        client.on_subscribe = lambda *_: ready.set()
        client.on_message = lambda *arguments: inbox.put(arguments[-1])
        client.connect("127.0.0.1", shared.listeners["device"])
        client.loop_start()
        try:
            assert ready.wait(timeout=PATIENCE)
            unique = publish(sender, channel, LIVE)
            found = inbox.get(timeout=PATIENCE)
            assert (found.topic, found.payload, found.qos) == (filter_of(channel), compact(LIVE), 1)
            assert ("apns-unique-id", unique) in found.properties.UserProperty
        finally:
            client.disconnect()
            client.loop_stop()


class TestOperators:
    def test_the_operator_sees_channels_and_counts(self, fresh, enroll):
        service = fresh().start()
        with Provider(service, key=service.provider_key()) as sender:
            channel = create(sender)
            links = [enroll(service, f"d{number}").connect() for number in range(2)]
            for link in links:
                link.subscribe(filter_of(channel))
            publish(sender, channel, expiration=soon())
            for link in links:
                link.next()
                link.settled()
            links[0].leave()
            base = f"http://127.0.0.1:{service.listeners['console']}"
            token = (service.data / "run" / "admin.token").read_text().strip()

            def ask(path):
                request = urllib.request.Request(base + path, headers={"authorization": f"Bearer {token}"})
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.read()

            def entry():
                (entry,) = json.loads(ask(f"/v1/channels?topic={TOPIC}"))["items"]
                return entry if entry["subscribers"] == 1 else None

            found = eventually(entry, what="the end of a subscription")
            assert (found["id"], found["topic"], found["environment"]) == (channel, TOPIC, "production")
            assert (found["policy"], found["published"], found["delivered"], found["stored"]) == (1, 1, 2, True)
            assert json.loads(ask("/v1/channels?topic=com.example.none"))["items"] == []
            metrics = ask("/metrics").decode()
            assert "\nherald_broadcasts_published_total 1\n" in metrics
            assert '\nherald_broadcast_deliveries_total{result="acknowledged"} 2\n' in metrics
            assert "\nherald_channels 1\n" in metrics and "\nherald_channel_subscriptions 1\n" in metrics
