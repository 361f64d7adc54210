"""Token keys are rotated and retired while the service runs, and devices learn their new tokens."""

import json

import pytest

from agents import Agent
from commands import one_line
from mqtt_packets import Kind, Reason, user
from provider import Provider
from service import TOPIC, herald

SECOND = "com.example.mail"


def command(service, *arguments):
    return json.loads(herald("token", *arguments, "--data", service.data, "--json").stdout)


@pytest.fixture
def service(fresh):
    return fresh().start()


@pytest.fixture
def provider(service):
    with Provider(service, service.provider_certificate(TOPIC, SECOND)) as connection:
        yield connection


def test_a_rotation_from_start_to_end(service, enroll, provider):
    (key,) = command(service, "keys")
    assert (key["id"], key["newest"], key["retired"], key["opened"]) == (1, True, None, 0)
    phone = enroll(service)
    link = phone.connect()
    old = link.register()
    assert provider.push(old).status == 200
    link.notification()
    # The new key mints from now on, and the old token is good.
    rotated = command(service, "rotate")
    assert (rotated["id"], rotated["newest"]) == (2, True)
    assert provider.push(old).status == 200
    # A connected device gets its new token once.
    new = link.token()
    assert new != old
    link.notification()
    link.settled()
    assert [(key["id"], key["newest"], key["opened"]) for key in command(service, "keys")] == [(1, False, 2), (2, True, 0)]
    # It tells its provider, and the old key comes to rest.
    assert provider.push(new).status == 200
    link.notification()
    assert [key["opened"] for key in command(service, "keys")] == [2, 1]
    assert "opened since" in herald("token", "keys", "--data", service.data).stdout
    retired = command(service, "retire", "1")
    assert retired["retired"]
    answer = provider.push(old)
    assert (answer.status, answer.reason) == (400, "BadDeviceToken")
    assert provider.push(new).status == 200
    link.notification()
    assert [key["opened"] for key in command(service, "keys")] == [None, 2]


def test_keys_in_use_cannot_be_retired(service):
    assert "makes new tokens" in one_line(herald("token", "retire", "1", "--data", service.data, check=False))
    assert "no token key 7" in one_line(herald("token", "retire", "7", "--data", service.data, check=False))
    command(service, "rotate")
    command(service, "retire", "1")
    assert "was retired at" in one_line(herald("token", "retire", "1", "--data", service.data, check=False))
    for _ in range(7):
        command(service, "rotate")
    assert "retire the oldest" in one_line(herald("token", "rotate", "--data", service.data, check=False))


def test_without_a_service_nothing_is_counted(service, enroll):
    token = enroll(service).connect().register()
    service.stop()
    command(service, "rotate")
    assert [key["opened"] for key in command(service, "keys")] == [None, None]
    assert "OPENED" in herald("token", "keys", "--data", service.data).stdout
    service.start()
    with Provider(service, service.provider_certificate()) as provider:
        assert provider.push(token).status == 200
    assert [key["opened"] for key in command(service, "keys")] == [1, 0]


@pytest.mark.parametrize("version", [5, 4], ids=["5.0", "3.1.1"])
def test_a_resumed_session_gets_its_new_token_after_connack(service, enroll, version):
    phone = enroll(service)
    link = phone.stay(version)
    old = link.register(TOPIC)
    link.subscribe(f"apps/{SECOND}")
    link.leave()
    # Nothing is said that the device was told before.
    link = phone.stay(version)
    assert link.connack.session_present
    link.settled()
    link.leave()
    command(service, "rotate")
    link = phone.stay(version)
    assert link.connack.session_present
    # It is lost: the connection ends before it is acknowledged, and so it is sent again.
    lost = link.expect(Kind.PUBLISH)
    link.close()
    link = phone.stay(version)
    new = link.token()
    assert new == lost.payload.decode() != old
    link.settled()
    link.leave()
    link = phone.stay(version)
    link.settled()
    link.leave()
    # The same across a restart.
    service.stop()
    service.start()
    link = phone.stay(version)
    assert link.connack.session_present
    link.settled()


def test_a_device_gets_its_new_token_after_a_kill_of_the_service(service, enroll):
    phone = enroll(service)
    phone.stay().register()
    command(service, "rotate")
    service.kill()
    service.start()
    link = phone.stay()
    assert link.connack.session_present
    link.token()
    link.settled()


def test_a_device_that_presents_an_old_token_gets_the_new_one(service, enroll):
    phone, tablet = enroll(service), enroll(service)
    link = phone.connect()
    old = link.register()
    silent = tablet.connect()
    silent.register()
    silent.unsubscribe(f"apps/{TOPIC}/#")
    silent.subscribe(f"apps/{TOPIC}")
    command(service, "rotate")
    new = link.token()
    assert new != old
    puback = link.publish(f"apps/{TOPIC}/token", old.encode())
    assert puback.reason == Reason.SUCCESS
    assert link.token() == new
    assert link.publish(f"apps/{TOPIC}/token", new.encode()).reason == Reason.SUCCESS
    link.settled()
    # Also on SUBSCRIBE, for an app subscribed to before.
    link.subscribe(f"apps/{SECOND}", properties=(user("token", old),))
    assert link.token() == new
    # A connection without a filter for the app is accepted.
    other = phone.connect(clean=True)
    other.subscribe(f"apps/{TOPIC}", properties=(user("token", old),))
    assert other.publish(f"apps/{TOPIC}/token", old.encode()).reason == Reason.SUCCESS
    other.settled()


@pytest.mark.parametrize("version", [5, 4], ids=["5.0", "3.1.1"])
def test_a_device_gets_its_new_token_once(service, enroll, version):
    phone = enroll(service)
    link = phone.stay(version)
    old = link.register(TOPIC, SECOND)
    command(service, "rotate")
    found = {link.expect(Kind.PUBLISH).topic: None for _ in range(2)}
    assert set(found) == {f"apps/{TOPIC}/token", f"apps/{SECOND}/token"}
    # Neither is acknowledged: both come again, and then no more.
    link.close()
    link = phone.stay(version)
    assert link.connack.session_present
    for _ in range(2):
        publish = link.expect(Kind.PUBLISH)
        assert publish.topic in found and publish.payload.decode() not in old
        link.acknowledge(publish)
    link.settled()
    link.leave()
    link = phone.stay(version)
    link.settled()


def test_every_app_of_every_connected_device_gets_its_new_token(service, enroll):
    link = enroll(service).connect()
    old = link.register(*[f"com.example.app{number}" for number in range(50)])
    others = [enroll(service).connect() for _ in range(4)]
    for other in others:
        other.register()
    command(service, "rotate")
    new = [link.expect(Kind.PUBLISH) for _ in range(50)]
    assert len({publish.payload for publish in new}) == 50
    assert not {publish.payload.decode() for publish in new} & set(old)
    for other in others:
        other.token()


@pytest.fixture
def agent(service, tmp_path):
    identity, _ = service.device("agent")
    agent = Agent(service, tmp_path / "device", identity).start("--app", TOPIC, "--allow", "alert")
    yield agent
    agent.close()


def test_a_connected_agent_stays_reachable_during_a_rotation(service, provider, agent):
    old = agent.token(TOPIC)
    # An attempt before that may have passed its limit of time.
    before = len(agent.passed)
    command(service, "rotate")
    new = agent.token(TOPIC)
    assert new != old
    command(service, "retire", "1")
    assert provider.push(old).reason == "BadDeviceToken"
    assert provider.push(new).status == 200
    agent.next("notification")
    assert not [line for line in agent.passed[before:] if line["event"] == "disconnected"]


def test_an_agent_absent_during_a_rotation_gets_its_token_later(service, provider, agent):
    old = agent.token(TOPIC)
    agent.stop()
    command(service, "rotate")
    command(service, "retire", "1")
    agent.start()
    # It presents the token of its earlier run, which is nobody's by now, and then none.
    agent.next("disconnected")
    new = agent.token(TOPIC)
    assert new != old
    assert provider.push(new).status == 200
    agent.next("notification")
