"""Three nodes between which devices move while providers post at all of them: nothing is lost, refused or out of order.

Each node and each NATS server has a network of its own; providers and devices are in a further one.
"""

import concurrent.futures
import json
import ssl
import threading
import time
import urllib.error

import pytest

import mqtt_packets as mqtt
from cluster_moves import Mover, Moves, Shared, Visit, connected, disorder
from cluster_network import network_cluster
from machine_pauses import Pauses
from mqtt_device import APPS, Identity, Refused
from mqtt_wire import Closed, Silence
from provider import HELLO, Provider, provider_token
from parties import assert_accepted
from ring_echo import RingEcho
from service import TOPIC, eventually, herald
from test_cluster_strangers import total
from test_cluster_trust import revoke
from test_crash_ledger import Ledger

#: The seconds in which a revocation is in force at all nodes in touch.
BOUND = 1.2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with network_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def nodes(cluster):
    return cluster.nodes


@pytest.mark.slow
def test_devices_that_move_between_nodes_under_load_miss_nothing(cluster, nodes, rounds):
    moves = Moves(nodes, rounds, devices=16, clones=4)
    # Rings may be late or repeated: each is followed by an old one.
    with RingEcho(cluster.servers[0], rounds.random("rings")) as echo:
        faults = moves.play()
    rounds.report(**moves.figures(), old_rings=echo.sent)
    assert not faults, "\n".join(faults[:5])
    # Nodes hardly ever end connections for another reason.
    assert sum(player.dismissed for player in moves.players) <= rounds.done // 10
    assert all(node.process.poll() is None for node in nodes)


def test_an_old_ring_shows_nothing_and_a_changed_one_is_set_aside(cluster, nodes):
    """A ring that is sent again rings for what has been read since. One that somebody has changed rings for nothing."""
    ledger, certificate = Ledger(), nodes[0].provider_certificate()
    player = Mover(nodes, ledger, threading.Lock(), "rung")

    def post(id):
        ledger.begin(id, (player.id, TOPIC))
        answer = provider.push(player.tokens[TOPIC], {"id": id})
        ledger.end(id, answer.status)
        assert_accepted(answer)

    def shows(visit, *ids):
        assert not player.receive(visit, len(ids))
        assert [id for _, id in visit.came[-len(ids):]] == list(ids)

    with RingEcho(cluster.servers[0]) as echo, Provider(nodes[1], certificate) as provider:
        # No node has to ring for a notification that comes before the first read.
        visit = player.connect(nodes[0])
        player.subscribe(visit)
        for id in ("first", "second"):
            post(id)
            shows(visit, id)
        echo.repeat(2)
        post("third")
        shows(visit, "third")
        # To a node that the device has come to since, they are as old.
        visit = player.connect(nodes[2])
        player.subscribe(visit)
        post("fourth")
        shows(visit, "fourth")
        echo.repeat(4)
        post("fifth")
        shows(visit, "fifth")
        before = sum(map(total, nodes))
        subject, ring = echo.rings[-1]
        echo.send(subject, ring[:-1] + bytes([ring[-1] ^ 1]))
        eventually(lambda: sum(map(total, nodes)) > before, what="a ring that is set aside")
    assert player.finish() == []


class Registrar:
    """A device at one node whose apps come and go, and providers at the other nodes that use its tokens at once."""

    #: Rounds until it is a new device, of which no node has heard.
    LIFE = 50

    def __init__(self, nodes, here, certificate):
        self.nodes, self.here = nodes, here
        self.providers = [Provider(node, certificate) for node in nodes if node is not here]
        self.device, self.played = None, 0
        #: Posts that a node still accepted after the end of their registration, and posts that it could not store.
        self.late = self.unavailable = 0

    def play(self, numbers, chance_of):
        for number in numbers:
            self.round(number, chance_of(number))

    def round(self, number, chance):
        if self.played % self.LIFE == 0:
            self.close_device()
            self.device = Identity(self.nodes[0], f"registrar{number}")
            self.device.service = self.here
            self.link = connected(self.device)
        self.played += 1
        topic = chance.choice(APPS)
        began = time.time()
        token = self.link.register(topic)
        for provider in chance.sample(self.providers, len(self.providers)):
            self.is_delivered(provider, token, topic, number)
        if chance.random() < 0.5:
            for setting in (b'{"enabled":false}', b'{"enabled":true}'):
                assert self.link.publish(f"apps/{topic}/settings", setting).reason == 0
            self.is_delivered(chance.choice(self.providers), token, topic, number)
        self.link.unsubscribe(f"apps/{topic}/#")
        for provider in self.providers:
            answer = eventually(lambda: self.ends(provider, token, topic), what="410 for a token that has ended")
            assert (answer.status, answer.reason) == (410, "Unregistered"), f"{answer.status} {answer.reason}"
            # A provider keeps a token that was registered after this.
            assert began * 1000 - 1 <= answer.timestamp <= time.time() * 1000 + 1

    def post(self, provider, token, topic, payload=HELLO):
        while (answer := provider.push(token, payload, topic=topic)).status == 503:
            self.unavailable += 1
        return answer

    def is_delivered(self, provider, token, topic, number):
        answer = self.post(provider, token, topic, {"id": number})
        assert answer.status == 200, f"a good token was answered {answer.status} {answer.reason}"
        try:
            assert json.loads(self.link.notification(topic).payload)["id"] == number
        except Silence:
            lines = herald("journal", "--data", self.here.data, answer.id, check=False).stdout
            raise AssertionError(f"{answer.id} did not come to {self.device.id} at {self.here.data.name}:\n{lines}") from None

    def ends(self, provider, token, topic):
        answer = self.post(provider, token, topic)
        if answer.status != 200:
            return answer
        self.late += 1
        return None

    def close_device(self):
        if self.device:
            self.device.close()

    def close(self):
        self.close_device()
        for provider in self.providers:
            provider.close()


@pytest.mark.slow
def test_a_token_made_at_one_node_is_good_at_the_others_at_once(nodes, rounds):
    certificate = nodes[0].provider_certificate(*APPS)
    registrars = [Registrar(nodes, here, certificate) for here in nodes]
    numbers = Shared(rounds)
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        plays = [pool.submit(registrar.play, numbers, rounds.random) for registrar in registrars]
    for registrar in registrars:
        registrar.close()
    for play in plays:
        play.result()
    rounds.report(**{
        "tokens": rounds.done, "refused": 0, "accepted_late": sum(each.late for each in registrars),
        "unavailable": sum(each.unavailable for each in registrars),
    })


def is_refused(device, node):
    """Whether a node refuses a device that is connected nowhere."""
    device.service = node
    try:
        link = device.connect()
        link.send(mqtt.disconnect())
        link.until_closed()
        return False
    except (Closed, Refused, ssl.SSLError, ConnectionError):
        return True


def is_revoked(device, node):
    """Revokes a device; false if the node does not know it yet."""
    try:
        revoke(node, device.id)
        return True
    except urllib.error.HTTPError as error:
        assert error.code == 404, error.read()
        return False


@pytest.mark.slow
def test_a_revocation_is_in_force_at_all_nodes_in_time(nodes, rounds):
    longest, late = 0, []
    with Pauses() as pauses:
        for number in rounds:
            device = Identity(nodes[0], f"revoked{number}")
            at, here, third = rounds.random(number).sample(nodes, 3)
            for node in (third, here):
                device.service = node
                link = connected(device)
                if node is third:
                    link.leave()
            eventually(lambda: is_revoked(device, at), what="a node that knows the new device")
            pauses.take()
            began = time.monotonic()
            link.until_closed()
            times = [time.monotonic() - began]
            eventually(lambda: is_refused(device, third), what="the refusal of a revoked device at the third node")
            times.append(time.monotonic() - began)
            late_by = max(times) - BOUND - pauses.take()
            assert is_refused(device, at) and is_refused(device, here)
            device.close()
            longest = max(longest, *times)
            if late_by > 0:
                late.append((number, times))
    rounds.report(revocations=rounds.done, late=len(late), longest=f"{longest:.2f} s")
    assert not late, f"later than {BOUND} s: {late[:5]}"


def test_a_node_that_stood_still_says_nothing_false(nodes):
    """It reads requests before it has heard what the other nodes did meanwhile: keys are made, an app is removed."""
    here, _, still = nodes
    kept, removed = APPS[:2]
    certificate, former = here.provider_certificate(*APPS), here.provider_key(kept)
    device = Identity(here, "still")
    link = connected(device)
    old, dead = link.register(kept), link.register(removed)
    with Provider(still, certificate) as provider, Provider(still) as by_key, Provider(still, key=former) as revoked:
        assert_accepted(provider.push(dead, topic=removed))
        link.notification(removed)
        # A node shares what a command has made within a quarter of a second.
        assert_accepted(eventually(lambda: (sent := revoked.push(old, topic=kept)).status == 200 and sent))
        link.notification(kept)
        still.pause()
        try:
            link.unsubscribe(f"apps/{removed}/#")
            key = here.provider_key(kept)
            herald("token", "rotate", "--data", here.data)
            herald("provider", "revoke", former[1], "--data", here.data)
            # The new key seals once the node counts as gone.
            new = link.token(kept)
            assert new != old
            streams = [
                (provider, provider.send(new, topic=kept), (200, None)),
                (provider, provider.send(dead, topic=removed), (410, "Unregistered")),
                (by_key, by_key.send(old, topic=kept, authorization=f"bearer {provider_token(key)}"), (200, None)),
                (revoked, revoked.send(old, topic=kept), (403, "InvalidProviderToken")),
            ]
        finally:
            still.resume()
        answers = [connection.answer(stream) for connection, stream, _ in streams]
        # A node may also say that it cannot know yet.
        said = [(answer.status, answer.reason) for answer in answers if answer.status != 503]
        assert said == [right for answer, (_, _, right) in zip(answers, streams) if answer.status != 503]
        assert_accepted(eventually(lambda: (sent := provider.push(new, topic=kept)).status != 503 and sent))
    device.close()


class TestDisorder:
    """The check of the order finds what it is there to find."""

    def visits(self, *steps):
        """Steps: `a+` posts a, `a-` one that expires, `a=` accepts it; `1!` begins the connection 1, and `1a` shows a on it."""
        ledger, visits = Ledger(), {}
        for first, second in steps:
            match second:
                case "+": ledger.begin(first, ("device", TOPIC))
                case "-": ledger.begin(first, ("device", TOPIC), expires=1)
                case "=": ledger.end(first, 200)
                case "!": visits[first] = Visit(ledger.moment())
                case _: visits[first].came.append((ledger.moment(), second))
        return disorder(list(visits.values()), ledger.entries)

    def test_an_older_notification_after_a_newer_one_is_found(self):
        assert self.visits("a+", "a=", "b+", "b=", "1!", "1b", "1a") == ["a came after a newer one"]

    def test_it_is_found_on_a_later_connection(self):
        assert self.visits("1!", "a+", "a=", "b+", "1b", "b=", "2!", "2a") == ["a came after a newer one"]

    def test_two_connections_at_once_have_no_order(self):
        assert not self.visits("1!", "2!", "a+", "a=", "b+", "b=", "1b", "2a")

    def test_notifications_that_were_posted_at_once_have_no_order(self):
        assert not self.visits("a+", "b+", "b=", "a=", "1!", "1b", "1a")

    def test_what_was_not_accepted_is_not_newer(self):
        assert not self.visits("a+", "a=", "b+", "1!", "1b", "1a")

    def test_notifications_that_expire_have_no_order(self):
        assert not self.visits("a+", "a=", "b-", "b=", "1!", "1b", "1a")
        assert not self.visits("a-", "a=", "b+", "b=", "1!", "1b", "1a")

    def test_two_deliveries_on_one_connection_are_found(self):
        assert self.visits("a+", "a=", "1!", "1a", "1a") == ["a came twice on one connection"]
