"""An agent whose connection is cut in every way shows each accepted notification once."""

import collections
import os
import signal
import time

import pytest

from agent_network import NAME, Network, NetworkedAgent
from cutting_proxy import CuttingProxy
from parties import new_id
from provider import Provider
from service import PATIENCE, eventually

APPS = [f"com.example.app{number}" for number in range(10)]


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


class Stage:
    """The service, the proxy before it, the agent behind a cable, and a provider that keeps count."""

    def __init__(self, service, network, tmp_path):
        self.service = service
        self.network = network
        self.certificate = service.provider_certificate(*APPS)
        self.proxy = CuttingProxy(network.address, lambda: service.listeners["device"])
        self.agent = NetworkedAgent(
            network, service, self.proxy.port, APPS, tmp_path / "hosts",
            "--longest-pause", "200ms", "--connections-per-hour", "100000",
        )
        self.promised = []
        self.provider = None
        self.agent.wait(lambda: len(self.agent.tokens()) == len(APPS), "a token for each app")

    def post(self):
        """Posts one notification, each time for the next app; 200 is a promise."""
        if self.provider is None:
            self.provider = Provider(self.service, self.certificate)
        app = APPS[len(self.promised) % len(APPS)]
        id = new_id()
        answer = self.provider.push(self.agent.tokens()[app], {"n": len(self.promised)}, id=id, topic=app)
        assert answer.status == 200, answer
        self.promised.append(id)

    def connections(self):
        return self.agent.count("connected")

    def wait_for_connection(self, number):
        self.agent.wait(lambda: self.connections() >= number, f"connection {number}")

    def restart(self):
        self.service.kill()
        if self.provider:
            self.provider.close()
            self.provider = None
        self.service.start()

    def close(self):
        self.agent.close()
        self.proxy.close()
        if self.provider:
            self.provider.close()


@pytest.fixture
def stage(fresh, network, tmp_path):
    service = fresh("--hostname", NAME, "--keep-alive", "4s").start()
    stage = Stage(service, network, tmp_path)
    yield stage
    stage.close()


def in_a_packet(stage, choice):
    """Somewhere in what the notification makes the two sides say to each other."""
    before = stage.proxy.cuts
    stage.proxy.plan(*choice.choice([("down", choice.randrange(400)), ("up", choice.randrange(40))]))
    stage.post()
    if stage.proxy.cuts == before:
        stage.proxy.cut()


def killed(stage, choice):
    """Kills the service after its 200, and starts it again."""
    stage.post()
    stage.restart()


def asleep(stage, choice):
    """The agent is suspended; the notification comes, and the connection goes, while it sleeps."""
    os.kill(stage.agent.process.pid, signal.SIGSTOP)
    try:
        stage.post()
        stage.proxy.cut()
        time.sleep(choice.random())  # pace: how long it is away
    finally:
        os.kill(stage.agent.process.pid, signal.SIGCONT)


def unplugged(stage, choice):
    """The cable is pulled and plugged again; the connection is gone meanwhile, and the reset is lost with the cable."""
    stage.network.pull()
    try:
        stage.post()
        stage.proxy.cut()
        time.sleep(choice.random())  # pace: how long it is away
    finally:
        stage.network.plug()


@pytest.mark.slow
def test_no_notification_is_lost_or_shown_twice_through_a_hundred_cuts(stage, rounds):
    rare = [killed, asleep, unplugged] * (1 + rounds.count // 20)
    ways = [in_a_packet] * (rounds.count - len(rare)) + rare
    choice = rounds.random(rounds.first)
    choice.shuffle(ways)
    for _, way in zip(rounds, ways):
        before = stage.connections()
        way(stage, choice)
        stage.wait_for_connection(before + 1)
    assert stage.connections() >= rounds.count - len(rare)
    show_once(stage)
    stage.agent.process.terminate()
    assert stage.agent.process.wait(timeout=PATIENCE) == 0


def test_a_silent_network_is_noticed_within_the_keep_alive(stage):
    stage.post()
    stage.agent.wait(lambda: stage.agent.shown() == stage.promised, "the first notification")
    stage.network.drop_packets()
    # A machine that pauses may have ended a connection before.
    ends, connections = stage.agent.count("disconnected"), stage.connections()

    def fell_silent():
        reasons = [event["reason"] for event in stage.agent.events if event["event"] == "disconnected"]
        return any("fell silent" in reason for reason in reasons[ends:])

    try:
        # TCP itself would try for a quarter of an hour: that it ends sooner is the keep-alive's doing.
        stage.agent.wait(fell_silent, "the end of the dead connection")
        stage.post()
    finally:
        stage.network.deliver()
    stage.wait_for_connection(connections + 1)
    show_once(stage)


@pytest.mark.slow
def test_a_suspended_agent_reconnects_at_once(stage):
    connections = stage.connections()
    os.kill(stage.agent.process.pid, signal.SIGSTOP)
    try:
        # One and a half keep alives, and what the agent takes for sleep.
        time.sleep(13)  # pace: how long it is suspended
        stage.post()
    finally:
        os.kill(stage.agent.process.pid, signal.SIGCONT)
    stage.wait_for_connection(connections + 1)
    show_once(stage)


def show_once(stage):
    """Each accepted notification is shown, or was replaced by a newer one for the same app; none is shown twice."""

    def missing():
        return [id for id in stage.promised if id not in stage.agent.shown()]

    def lost():
        return [id for id in missing() if "replaced" not in str(stage.service.journal(id))]

    try:
        eventually(lambda: not lost())
    except AssertionError:
        raise AssertionError([stage.service.journal(id) for id in lost()]) from None
    twice = [id for id, count in collections.Counter(stage.agent.shown()).items() if count > 1]
    assert not twice
    assert set(stage.agent.shown()) <= set(stage.promised)
