"""Providers and devices of a cluster's node, and the ledger of what it accepted while its NATS servers fail."""

import collections
import itertools
import math
import threading
import time

from provider import Provider, away_device
from service import PATIENCE, TOPIC, eventually
from test_crash_ledger import SECOND_TOPIC, Ledger, Listener, Load, drain

TOPICS = (TOPIC, SECOND_TOPIC)
#: Requests of a provider that are under way.
DEPTH = 10
#: Seconds until a provider that was refused goes on.
PAUSE = 0.05


class ClusterLedger(Ledger):
    """A ledger that knows of each slot when the last notification was posted that was accepted."""

    def __init__(self):
        super().__init__()
        self.newest = {}

    def end(self, id, status):
        super().end(id, status)
        entry = self.entries[id]
        if status == 200:
            self.newest[entry.slot] = max(entry.sent, self.newest.get(entry.slot, 0))


class Pusher(Load):
    """A provider that pushes until it is told to end, and waits a little after a refusal."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.ends = threading.Event()

    def run(self):
        try:
            self.push(self.service)
        except BaseException as error:
            self.error = error

    def push(self, node, turn=math.inf, **options):
        """Pushes at a node until it is told to end, until the node wants no more, or until so many were answered."""
        under_way, begun = {}, itertools.count()
        with Provider(node, **self.credential, **options) as provider:
            def goes_on():
                return not self.ends.is_set() and not provider.goaways and next(begun) < turn

            try:
                while True:
                    while len(under_way) < min(DEPTH, provider.concurrency) and goes_on():
                        stream, id = self.begin(provider)
                        under_way[stream] = id
                    if not under_way:
                        return
                    provider.pump(lambda: any(provider.answers[stream].ended for stream in under_way))
                    if self.is_refused(provider, under_way):
                        self.ends.wait(PAUSE)
                    self.collect(provider, under_way)
            finally:
                # Answers before the end count.
                with self.lock:
                    self.collect_last(provider, under_way)

    @staticmethod
    def is_refused(provider, under_way):
        return any(provider.answers[stream].ended and provider.answers[stream].status != 200 for stream in under_way)


class ClusterLoad:
    """Pushes without end inside of `with`, to devices that are here and to devices that are away."""

    #: How many of them.
    HERE, AWAY = 2, 4

    def __init__(self, node, chance):
        self.node = node
        self.here = [away_device(node, *TOPICS) for _ in range(self.HERE)]
        self.away = [away_device(node, *TOPICS) for _ in range(self.AWAY)]
        self.ledger, self.lock = ClusterLedger(), threading.Lock()
        self.key = {"key": node.provider_key()}
        self.slots = [((device.id, topic), device.tokens[topic]) for device in self.here + self.away for topic in TOPICS]
        self.pushers = [
            self.pusher(credential, chance) for credential in ({"certificate": node.provider_certificate(*TOPICS)}, self.key)
        ]
        #: Seconds after each fault until a notification was accepted for each app of each device.
        self.waits = []

    def __enter__(self):
        self.listeners = [self.listener(device) for device in self.here]
        for pusher in self.pushers:
            pusher.start()
        return self

    def __exit__(self, *_):
        for pusher in self.pushers:
            pusher.ends.set()
        for pusher in self.pushers:
            pusher.join(PATIENCE)
        for listener in self.listeners:
            listener.close()

    def pusher(self, credential, chance):
        return Pusher(self.node, credential, self.slots, self.ledger, self.lock, chance, lambda: None)

    def listener(self, device):
        return Listener(self.node, device, TOPICS, self.ledger, self.lock, comes_back=True)

    def flows(self):
        """Waits until a notification was accepted for each app of each device that was posted after this call."""
        began = time.monotonic()
        with self.lock:
            moment = self.ledger.moment()

        def missing():
            assert all(pusher.is_alive() for pusher in self.pushers), [pusher.error for pusher in self.pushers]
            with self.lock:
                return [slot for slot, _ in self.slots if self.ledger.newest.get(slot, 0) <= moment]

        try:
            eventually(lambda: not missing(), 2 * PATIENCE, "an accepted notification for each app of each device")
        except AssertionError as error:
            with self.lock:
                answers = collections.Counter(
                    (entry.slot, entry.status) for entry in self.ledger.entries.values() if entry.sent > moment
                )
            raise AssertionError(f"{error}: {missing()}; answers: {answers}") from None
        self.waits.append(time.monotonic() - began)

    def count(self, status):
        with self.lock:
            return sum(entry.status == status for entry in self.ledger.entries.values())

    def faults(self):
        """All that is wrong, after the load has ended and the cluster is whole again."""
        assert not any(pusher.is_alive() for pusher in self.pushers), "a provider waits in vain"
        errors = [repr(pusher.error) for pusher in self.pushers if pusher.error]
        # A stream that has a new leader may refuse a connection once more.
        last = {
            device.id: drain(self.node_of(device), device, TOPICS, self.ledger, self.lock, self.key, comes_back=True)
            for device in self.here + self.away
        }
        returned = [id for device in self.away for id in last[device.id]]
        entries = self.ledger.entries
        return errors + [
            *(f"{id} was accepted, and is lost" for id in self.ledger.lost(time.time())),
            *(f"{id} had been replaced, and came" for id in self.ledger.superseded(returned)),
            *(f"{id} was refused, and came" for id in self.ledger.seen & entries.keys() if entries[id].status not in (200, None)),
            *(f"an answer {status}" for status in {entry.status for entry in entries.values()} - {200, 503, None}),
        ]

    def node_of(self, device):
        """The node to which a device connects for the last time."""
        return self.node

    def figures(self):
        """Figures for the table of `make soak`."""
        return {
            "accepted": self.count(200), "refused": self.count(503), "unknown": self.count(None), "delivered": len(self.ledger.seen),
            "longest_wait": f"{max(self.waits):.1f} s",
        }
