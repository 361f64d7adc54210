"""Kills the service at random moments under load and shows by a ledger of all 200s that none was forgotten."""

import collections
import contextlib
import dataclasses
import itertools
import json
import ssl
import threading
import time

import paho.mqtt.client as mqtt
import pytest

from parties import new_id
from provider import Device, Disconnected, Provider, away_device, tls_context
from service import PATIENCE, TOPIC, eventually

SECOND_TOPIC = f"{TOPIC}.voip"


@dataclasses.dataclass(eq=False)
class Entry:
    """One request: when it was begun and, if it was, answered, on a clock that only counts."""

    id: str
    slot: tuple
    sent: int
    #: UNIX seconds after which it need not be delivered; None for never.
    expires: int = None
    answered: int = None
    status: int = None


class Ledger:
    """All requests of all cycles, and what the devices saw."""

    def __init__(self):
        self._clock = itertools.count()
        self.entries = {}
        self.seen = set()

    def begin(self, id, slot, expires=None):
        self.entries[id] = Entry(id, slot, next(self._clock), expires)

    def end(self, id, status):
        """Notes an answer. A stream that ends without one says nothing: the notification may still be stored."""
        entry = self.entries[id]
        entry.status = status
        if status is not None:
            entry.answered = self.moment()

    def moment(self):
        """A moment on the clock of the ledger: later than all before."""
        return next(self._clock)

    @property
    def accepted(self):
        return [entry for entry in self.entries.values() if entry.status == 200]

    def lost(self, now):
        """The accepted notifications that are neither delivered, nor replaced, nor expired.

        One that was begun and never answered may have been stored before the crash, and then it has replaced what was
        before it. But the newest of all must have been delivered, or have expired: so whatever is missing must have a
        delivered or expired one of its slot that is not surely older.
        """
        ended = collections.defaultdict(list)
        for entry in self.entries.values():
            if entry.id in self.seen or (entry.expires and entry.expires <= now):
                ended[entry.slot].append(entry)
        return [
            entry.id
            for entry in self.accepted
            # The latest first: it most likely is the one.
            if not any(entry is end or _may_follow(end, entry) for end in reversed(ended[entry.slot]))
        ]

    def superseded(self, last):
        """Of what devices that were away for the whole time got last: what was surely replaced by something accepted."""
        return [
            id
            for id in last
            if any(
                later.slot == self.entries[id].slot and not later.expires and self._surely_follows(later, self.entries[id])
                for later in self.accepted
            )
        ]

    @staticmethod
    def _surely_follows(later, entry):
        return entry.answered is not None and entry.answered < later.sent


def _may_follow(later, entry):
    """Whether the service may have taken `later` after `entry`: unless it was answered before the other was begun."""
    return later.answered is None or later.answered > entry.sent


class Load(threading.Thread):
    """A provider that keeps many requests under way until the service dies."""

    def __init__(self, service, credential, slots, ledger, lock, chance, on_answer):
        super().__init__(daemon=True)
        self.service, self.credential, self.slots = service, credential, slots
        self.ledger, self.lock = ledger, lock
        self.random = chance
        self.on_answer = on_answer
        self.error = None

    def run(self):
        under_way = {}
        try:
            with Provider(self.service, **self.credential) as provider:
                while True:
                    depth = self.random.choice((1, 8, 40))
                    while len(under_way) < min(depth, provider.concurrency):
                        stream, id = self.begin(provider)
                        under_way[stream] = id
                    provider.pump(lambda: any(provider.answers[stream].ended for stream in under_way))
                    self.collect(provider, under_way)
        except (Disconnected, ConnectionError, ssl.SSLError):
            # Answers before the end count.
            with self.lock:
                self.collect_last(provider, under_way) if under_way else None
        except BaseException as error:
            self.error = error

    def begin(self, provider):
        (device, topic), token = self.random.choice(self.slots)
        id = new_id()
        expires = int(time.time()) + 1 if self.random.random() < 0.05 else None
        with self.lock:
            self.ledger.begin(id, (device, topic), expires)
        payload = {"aps": {"alert": "x" * self.random.choice((1, 200, 3000))}, "id": id}
        return provider.send(token, payload, id=id, topic=topic, expiration=expires), id

    def collect(self, provider, under_way):
        for stream in [stream for stream in under_way if provider.answers[stream].ended]:
            with self.lock:
                self.ledger.end(under_way.pop(stream), provider.answers.pop(stream).status or None)
            self.on_answer()

    def collect_last(self, provider, under_way):
        for stream, id in under_way.items():
            if provider.answers[stream].ended:
                self.ledger.end(id, provider.answers[stream].status or None)


class Listener:
    """A device on paho-mqtt, which notes what it receives before it acknowledges it.

    It has one connection, or comes back when it is dismissed.
    """

    def __init__(self, service, device, topics, ledger, lock, comes_back=False):
        self.arrived = []
        self.ledger, self.lock = ledger, lock
        self.subscribed = threading.Event()
        #: How often it has subscribed to all of its apps.
        self.subscriptions = 0
        #: The ends of its attempts to connect, and of its connections.
        self.ends = []
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id=device.id, protocol=mqtt.MQTTv5, reconnect_on_failure=comes_back
        )
        self.client.reconnect_delay_set(1, 1)
        self.client.tls_set_context(tls_context(service.ca, device.path, alpn=()))

        def on_subscribe(_client, _data, _mid, reasons, _properties):
            if any(reason.is_failure for reason in reasons):
                # Its node could not find out, and the device is to try again.
                self.ends.append(f"{time.strftime('%X')} SUBACK {reasons[0]}")
                self.again()
            else:
                self.subscriptions += 1
                self.subscribed.set()

        def on_connect(_client, _data, _flags, reason, _properties):
            self.ends.append(f"{time.strftime('%X')} CONNACK {reason}")
            self.subscribe()

        def on_disconnect(_client, _data, _flags, reason, _properties):
            self.ends.append(f"{time.strftime('%X')} disconnected: {reason}")

        def on_message(_client, _data, message):
            self.receive(json.loads(message.payload)["id"])

        self.topics = topics
        self.client.on_connect, self.client.on_disconnect, self.client.on_message = on_connect, on_disconnect, on_message
        self.client.on_subscribe = on_subscribe
        self.client.connect_timeout = PATIENCE
        self.begin(service)
        assert self.subscribed.wait(timeout=PATIENCE), f"the device could not subscribe: {self.ends}"

    def begin(self, service):
        self.client.connect(service.host, service.listeners["device"])
        self.client.loop_start()

    def receive(self, id):
        self.arrived.append(id)
        with self.lock:
            self.ledger.seen.add(id)

    def subscribe(self):
        self.client.subscribe([(f"apps/{topic}", 1) for topic in self.topics])

    def again(self):
        """Subscribes once more, a little later."""
        timer = threading.Timer(1, self.subscribe)
        timer.daemon = True
        timer.start()

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.slow
def test_no_accepted_notification_is_forgotten(fresh, rounds):
    service = fresh().start()
    balance(service, rounds, statuses={200, None})
    service.stop()


def balance(service, rounds, statuses, before_death=lambda cycle: None, before_start=lambda cycle: None):
    """Kills the service in each round, and shows at the end that no notification is lost that it had accepted.

    `statuses` are the answers that providers may get; `before_death` and `before_start` add faults to a round.
    """
    topics = (TOPIC, SECOND_TOPIC)
    connected = [away_device(service, *topics) for _ in range(3)]
    away = [away_device(service, *topics) for _ in range(3)]
    subscriber = Device(service, *topics).start()
    subscriber.stop()
    credentials = [
        {"certificate": service.provider_certificate(*topics)}, {"key": service.provider_key()},
        {"key": service.provider_key()},
    ]
    slots = [((device.id, topic), device.tokens[topic]) for device in [*connected, *away, subscriber] for topic in topics]
    ledger, lock = Ledger(), threading.Lock()
    repeats = answered = 0
    for cycle in rounds:
        listeners = [Listener(service, device, topics, ledger, lock) for device in connected]
        subscriber.start()
        deaths = rounds.random(cycle).randrange(1, 400)
        answered += deaths
        enough = threading.Event()
        count = itertools.count(1)
        loads = [
            Load(
                service, credential, slots, ledger, lock, rounds.random(cycle, number),
                lambda: next(count) >= deaths and enough.set(),
            )
            for number, credential in enumerate(credentials)
        ]
        for load in loads:
            load.start()
        assert enough.wait(timeout=PATIENCE), "the load does not advance"
        before_death(cycle)
        service.kill()
        for load in loads:
            load.join(timeout=PATIENCE)
            assert load.error is None, f"cycle {cycle}: {load.error!r}"
        for listener in listeners:
            listener.close()
            repeats += len(listener.arrived) - len(set(listener.arrived))
        subscriber.stop()
        before_start(cycle)
        service.start()
    ledger.seen.update(message.json["id"] for message in subscriber.messages)
    last = {
        device.id: drain(service, device, topics, ledger, lock, credentials[1])
        for device in [*connected, *away, subscriber]
    }
    lost = ledger.lost(now=time.time())
    rounds.report(sent=len(ledger.entries), accepted=len(ledger.accepted), delivered=len(ledger.seen), lost=len(lost))
    assert len(ledger.accepted) >= answered
    assert not lost, f"{len(lost)} of {len(ledger.accepted)} accepted notifications are lost: {lost[:5]}"
    returned = [id for device in away for id in last[device.id]]
    assert not ledger.superseded(returned), "a device got what had been replaced"
    assert len(returned) <= len(away) * len(topics), "a device got more than one stored notification of an app"
    assert repeats == 0, "something was delivered twice on one connection"
    answers = collections.Counter(entry.status for entry in ledger.entries.values())
    assert set(answers) <= statuses, answers


def drain(service, device, topics, ledger, lock, credential, comes_back=False):
    """Connects the device for the last time and returns what it is sent."""
    listener = Listener(service, device, topics, ledger, lock, comes_back)
    with contextlib.suppress(AssertionError):
        # If it does not come about, the ledger tells what is missing.
        eventually(lambda: not any(ledger.entries[id].slot[0] == device.id for id in ledger.lost(time.time())))
    with Provider(service, **credential) as provider:
        marks, marked = {topic: set() for topic in topics}, 0

        def have_come():
            """Marks the end again after each subscription: a mark is tried once, so a connection that ends takes it along."""
            nonlocal marked
            if marked != (subscriptions := listener.subscriptions):
                for topic in topics:
                    id = new_id()
                    marks[topic].add(id)
                    answer = provider.push(device.tokens[topic], {"id": id}, topic=topic, id=id, expiration=0)
                    # A node of a cluster may have lost its servers for a moment.
                    if answer.status == 503:
                        return False
                    assert answer.status == 200, answer
                marked = subscriptions
            return not any(ids.isdisjoint(listener.arrived) for ids in marks.values())

        try:
            eventually(have_come, what="the arrival of what was sent at the end")
        except AssertionError as error:
            raise AssertionError(f"{error}: {listener.ends}, {listener.subscriptions} subscriptions") from None
    listener.close()
    return [id for id in listener.arrived if id not in set().union(*marks.values())]


class TestLedger:
    """The oracle finds what it is there to find."""

    def make(self, *steps):
        """A ledger of steps: `a+` begins the request a, `a=` answers it with 200, `a!` delivers it."""
        ledger = Ledger()
        for step in steps:
            id, what = step[:-1], step[-1]
            if what == "+":
                ledger.begin(id, ("device", TOPIC))
            elif what == "=":
                ledger.end(id, 200)
            else:
                ledger.seen.add(id)
        return ledger

    def test_an_accepted_notification_never_seen_is_lost(self):
        assert self.make("a+", "a=").lost(now=0) == ["a"]

    def test_one_lost_among_many_is_found(self):
        steps = [step for n in range(50) for step in (f"{n}+", f"{n}=", f"{n}!")]
        ledger = self.make(*steps)
        assert ledger.lost(now=0) == []
        ledger.begin("planted", ("device", "com.example.planted"))
        ledger.end("planted", 200)
        assert ledger.lost(now=0) == ["planted"]

    def test_the_newest_is_lost_although_older_ones_were_seen(self):
        assert self.make("a+", "a=", "a!", "b+", "b=").lost(now=0) == ["b"]

    def test_a_replaced_notification_is_not_lost(self):
        assert self.make("a+", "a=", "b+", "b=", "b!").lost(now=0) == []

    def test_an_unanswered_notification_may_have_replaced_it(self):
        assert self.make("a+", "a=", "b+", "b!").lost(now=0) == []

    def test_an_unanswered_replacement_must_have_been_delivered(self):
        assert self.make("a+", "a=", "b+").lost(now=0) == ["a"]

    def test_concurrent_notifications_may_replace_each_other(self):
        assert self.make("a+", "b+", "b=", "a=", "a!").lost(now=0) == []

    def test_a_refused_notification_is_not_lost(self):
        assert self.make("a+").lost(now=0) == []

    def test_an_expired_notification_is_not_lost(self):
        ledger = Ledger()
        ledger.begin("a", ("device", TOPIC), expires=10)
        ledger.end("a", 200)
        assert ledger.lost(now=9) == ["a"]
        assert ledger.lost(now=11) == []

    def test_a_replaced_notification_must_not_return(self):
        ledger = self.make("a+", "a=", "b+", "b=")
        assert ledger.superseded(["a"]) == ["a"]
        assert ledger.superseded(["b"]) == []
