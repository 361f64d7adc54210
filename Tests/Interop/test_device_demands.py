"""Demands of a service on its devices: their tokens after every connect, and topics that a credential names."""

import json
import signal
import urllib.request

import pytest

from agents import Agent
from mqtt_device import LONG, MAIL
from mqtt_packets import Property, Reason
from provider import HELLO, Device, Provider
from service import PATIENCE, TOPIC, Service, eventually, herald

WITHHELD = "notifications of a device wait: it has not presented the tokens of its apps"


@pytest.fixture(scope="module")
def demanding(tmp_path_factory):
    """A service that gives devices a second for their tokens."""
    service = Service(tmp_path_factory.mktemp("demanding") / "data", "--require-token", "1s").start()
    yield service
    service.close()


@pytest.fixture(scope="module")
def pem(demanding):
    return demanding.provider_certificate(TOPIC, MAIL)


def withheld(service, device, before=0):
    """Waits until the log says that the grace of a device's connection is over, in a line after those that were there before."""
    eventually(
        lambda: any(WITHHELD in line and f"device={device.id}" in line for line in service.lines[before:]),
        what="the end of the grace",
    )


def token_property(token):
    return (Property.USER, ("token", token))


class TestTokens:
    def test_an_app_gets_nothing_after_the_grace_until_its_token_is_presented(self, demanding, enroll, pem, version):
        device = enroll(demanding)
        link = device.connect(version)
        token = link.register()
        withheld(demanding, device)
        with Provider(demanding, pem) as provider:
            answer = provider.push(token, explain=1)
            assert answer.status == 200
            assert "has not presented the app's token" in answer.header("herald-explanation")
            (waiting,) = [line for line in demanding.journal(answer.id) if line["state"] == "stored"]
            assert waiting["reason"] == "token not presented"
            lost = provider.push(token, expiration=0, explain=1)
            assert "has not presented the app's token" in lost.header("herald-explanation")
            link.settled()
            assert link.publish(f"apps/{TOPIC}/token", token.encode()).reason == 0
            assert json.loads(link.notification().payload) == HELLO
            # From then on notifications come as they are sent.
            assert provider.push(token, expiration=0).status == 200
            link.notification()

    def test_a_resumed_session_has_to_present_its_tokens_too(self, demanding, enroll, pem, version):
        device = enroll(demanding)
        link = device.connect(version, clean=False, expiry=LONG)
        token = link.register()
        assert link.publish(f"apps/{TOPIC}/token", token.encode()).reason == 0
        link.leave()
        before = len(demanding.lines)
        link = device.connect(version, clean=False, expiry=LONG)
        assert link.connack.session_present
        withheld(demanding, device, before)
        with Provider(demanding, pem) as provider:
            assert provider.push(token).status == 200
            link.settled()
            assert link.publish(f"apps/{TOPIC}/token", token.encode()).reason == 0
            link.notification()

    def test_subscribe_presents_tokens_in_a_user_property(self, demanding, enroll, pem):
        """Of mosquitto_sub, a client that knows nothing of this. Its second app has no token there, and waits."""
        device = Device(demanding, TOPIC, MAIL).start().stop()
        other = enroll(demanding)
        other.connect().register()
        held = ["-D", "subscribe", "user-property", "token", device.token]
        with device.start(*held), Provider(demanding, pem) as provider:
            withheld(demanding, other)
            withheld(demanding, device)
            assert provider.push(device.tokens[MAIL], topic=MAIL).status == 200
            assert provider.push(device.token).status == 200
            assert device.next().topic == f"apps/{TOPIC}"
            assert [message.topic for message in device.messages] == [f"apps/{TOPIC}"]

    def test_the_suback_says_what_is_missing(self, demanding, enroll):
        device = enroll(demanding)
        link = device.connect()
        suback = link.subscribe(f"apps/{TOPIC}/#")
        assert suback.reasons == (1,)
        assert "requires each app's token" in dict(suback.properties)[Property.REASON_STRING]
        token = link.token()
        link.leave()
        suback = device.connect().subscribe(f"apps/{TOPIC}", properties=[token_property(token)])
        assert suback.reasons == (1,) and Property.REASON_STRING not in dict(suback.properties)

    def test_the_agent_presents_its_tokens_on_every_connection(self, demanding, enroll, pem, tmp_path):
        identity, _ = demanding.device("agent")
        agent = Agent(demanding, tmp_path / "agent", identity)
        try:
            for _ in range(2):
                # The first time it gets its token on this very connection.
                agent.start("--app", TOPIC, "--allow", "alert,badge,sound")
                agent.next("connected")
                token = agent.token(TOPIC)
                silent = enroll(demanding)
                silent.connect().register()
                withheld(demanding, silent)
                with Provider(demanding, pem) as provider:
                    assert provider.push(token, expiration=0).status == 200
                agent.next("notification", topic=TOPIC)
                assert agent.stop() == 0
        finally:
            agent.close()


class TestTopics:
    @pytest.fixture
    def service(self, fresh, tmp_path):
        self.file = tmp_path / "herald.yaml"
        self.file.write_text("device-topics: any\n")
        return fresh("--config", str(self.file)).start()

    def demand(self, service, text):
        before = len(service.lines)
        self.file.write_text(text)
        service.process.send_signal(signal.SIGHUP)
        eventually(lambda: any("configuration reloaded" in line for line in service.lines[before:]), what="the reload")

    def test_a_device_registers_topics_of_credentials_only(self, service, enroll, version):
        device = enroll(service)
        link = device.connect(version)
        before, mine, other = "com.example.before", f"{TOPIC}.voip", "com.example.unknown"
        link.register(before)
        self.demand(service, "device-topics: known\n")
        suback = link.subscribe(f"apps/{other}/#", f"apps/{before}/#", f"apps/{TOPIC}/#")
        refused = Reason.NOT_AUTHORIZED if version == 5 else 0x80
        assert suback.reasons == (refused, 1, refused)
        if version == 5:
            assert dict(suback.properties)[Property.REASON_STRING] == "no credential of the service names the topic"
        # A registration that is there stays.
        link.token(before)
        (line,) = eventually(lambda: [line for line in service.lines if "app refused: no credential names" in line])
        assert f"device={device.id}" in line and f"topic={other}" in line
        assert metric(service, "herald_registrations_refused_total") == 2
        # A credential makes its topic known at once, with all suffixes.
        service.provider_certificate(TOPIC)
        link.register(TOPIC, mine)
        herald("app", "claim", other, "--team", "TEAM000001", "--data", service.data)
        link.register(other)


def metric(service, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))
