"""Providers and devices of a cluster, and the ledger of what it accepted while its nodes, its NATS servers or the networks fail.

`ClusterLoad` is the load of one node; a `RoamingLoad` goes to another node when one fails.
"""

import collections
import contextlib
import itertools
import math
import threading
import time

from provider import Disconnected, Provider, away_device
from service import PATIENCE, TOPIC, eventually, herald
from test_crash_ledger import SECOND_TOPIC, Ledger, Listener, Load, drain

TOPICS = (TOPIC, SECOND_TOPIC)
#: Requests of a provider that are under way.
DEPTH = 10
#: Seconds until a provider that was refused goes on.
PAUSE = 0.05
#: Seconds after which a provider that gets no answer goes to another node.
SILENCE = 10
#: Answers after which a provider goes to another node without a reason.
TURN = 300
#: Seconds between the signs of life of a device that may go to another node; it does so after two of them.
KEEP_ALIVE = 5


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

    def disorder(self, arrived):
        """Of what a device got, in this order: what came after something newer that was accepted."""
        newest = {}
        for entry in (self.entries[id] for id in arrived if id in self.entries):
            if entry.answered is not None and entry.answered < newest.get(entry.slot, 0):
                yield entry.id
            if entry.status == 200:
                newest[entry.slot] = max(entry.sent, newest.get(entry.slot, 0))


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
                    while len(under_way) < DEPTH and goes_on():
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


class RoamingPusher(Pusher):
    """A provider of several nodes, which are its `service`. It goes to another one if one fails, and now and then without a reason."""

    def run(self):
        try:
            while not self.ends.is_set():
                with contextlib.suppress(Disconnected, OSError):
                    self.push(self.random.choice(self.service), TURN, timeout=SILENCE)
                self.ends.wait(PAUSE)
        except BaseException as error:
            self.error = error


class RoamingListener(Listener):
    """A device that tries the nodes in turn, and the next one when its connection ends."""

    def __init__(self, nodes, device, ledger, lock):
        #: The node to which it is connected, or connects.
        self.node = None
        self.is_over = threading.Event()
        self.device, self._nodes = device.id, nodes
        self._thread = threading.Thread(target=self._roam, daemon=True)
        super().__init__(nodes[0], device, TOPICS, ledger, lock)

    def begin(self, _):
        self.client.connect_timeout = KEEP_ALIVE
        self._thread.start()

    def _roam(self):
        for self.node in itertools.cycle(self._nodes):
            # An error tells no more than the end of a connection.
            with contextlib.suppress(OSError):
                self.client.connect(self.node.host, self.node.listeners["device"], keepalive=KEEP_ALIVE)
                self.client.loop_forever()
            self.subscribed.clear()
            if self.is_over.wait(PAUSE):
                return

    def again(self):
        """Goes to another node, which may know."""
        self.client.disconnect()

    def stay(self):
        """Does not look for another node when its connection ends."""
        self.is_over.set()

    def wait(self):
        """Waits for the end of its last connection."""
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "a connection does not end"

    def close(self):
        self.is_over.set()
        while self._thread.is_alive():
            # It may have been about to connect.
            self.client.disconnect()
            self._thread.join(PAUSE)


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
        #: Former connections of devices, which are now at another node.
        self.former = []

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
        for listener in self.listeners + self.former:
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
        disorder = [id for listener in self.listeners + self.former for id in self.ledger.disorder(listener.arrived)]
        returned = [id for device in self.away for id in last[device.id]]
        entries = self.ledger.entries
        return errors + [
            *(f"{id} was accepted, and is lost" for id in self.ledger.lost(time.time())),
            *(f"{id} had been replaced, and came" for id in self.ledger.superseded(returned)),
            *(f"{id} came after a newer one" for id in disorder),
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


class RoamingLoad(ClusterLoad):
    """The load of several nodes. Providers and devices are at all of them, and go elsewhere when one fails."""

    HERE, AWAY = 3, 3

    def __init__(self, nodes, chance):
        self.nodes = nodes
        super().__init__(nodes[0], chance)
        #: A device for which the load has nothing.
        self.probe = away_device(nodes[0])
        for node in nodes:
            eventually(lambda: self.key["key"][1] in herald("provider", "list", "--data", node.data, "--json").stdout, what="the key")

    def pusher(self, credential, chance):
        return RoamingPusher(self.nodes, credential, self.slots, self.ledger, self.lock, chance, lambda: None)

    def listener(self, device, nodes=None):
        first = self.here.index(device)
        return RoamingListener(nodes or self.nodes[first:] + self.nodes[:first], device, self.ledger, self.lock)

    def leave(self, node):
        """Lets a device that is at a node connect to another one, without a word to the first.

        Returns its former connection; None if no device is there.
        """
        for number, listener in enumerate(self.listeners):
            if listener.node is node and listener.subscribed.is_set():
                listener.stay()
                self.former.append(listener)
                self.listeners[number] = self.listener(self.here[number], [each for each in self.nodes if each is not node])
                return listener
        return None

    def accept(self):
        """Waits until each node accepts a notification."""
        for node in self.nodes:
            def is_accepted():
                with contextlib.suppress(Disconnected, OSError), Provider(node, timeout=SILENCE, **self.key) as provider:
                    return provider.push(self.probe.token).status == 200

            eventually(is_accepted, 2 * PATIENCE, f"a notification that {node} accepts")

    def node_of(self, device):
        return self.nodes[(self.here + self.away).index(device) % len(self.nodes)]

    def arrives(self):
        """Waits until each device that is here has got something for each app that was posted after this call."""
        with self.lock:
            moment = self.ledger.moment()
        waiting = {(device.id, topic) for device in self.here for topic in TOPICS}
        looked = [0] * len(self.listeners)

        def has_arrived():
            with self.lock:
                for number, listener in enumerate(self.listeners):
                    new = [self.ledger.entries[id] for id in listener.arrived[looked[number]:]]
                    looked[number] += len(new)
                    waiting.difference_update(entry.slot for entry in new if entry.sent > moment)
            return not waiting

        try:
            eventually(has_arrived, 2 * PATIENCE, "a notification for each app of each device that is connected")
        except AssertionError as error:
            connections = [(listener.device, listener.node, listener.ends[-10:]) for listener in self.listeners]
            raise AssertionError(f"{error}: none for {waiting}; {connections}") from None
