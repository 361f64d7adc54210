"""Providers and devices of several nodes, which go to another node when one fails."""

import contextlib
import itertools
import threading

from cluster_load import PAUSE, TOPICS, ClusterLoad, Pusher
from cluster_moves import Visit, disorder
from provider import Disconnected, Provider, away_device
from service import PATIENCE, eventually, herald
from test_crash_ledger import Listener

#: Seconds after which a provider that gets no answer goes to another node.
SILENCE = 10
#: Answers after which a provider goes to another node without a reason.
TURN = 300
#: Seconds between the signs of life of a device that may go to another node; it does so after two of them.
KEEP_ALIVE = 5


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
        #: Its connections.
        self.visits = []
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
                with self.lock:
                    self.visits.append(Visit(self.ledger.moment(), node=self.node))
                self.client.connect(self.node.host, self.node.listeners["device"], keepalive=KEEP_ALIVE)
                self.client.loop_forever()
            self.subscribed.clear()
            if self.is_over.wait(PAUSE):
                return

    def receive(self, id):
        super().receive(id)
        with self.lock:
            self.visits[-1].came.append((self.ledger.moment(), id))

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


class RoamingLoad(ClusterLoad):
    """The load of several nodes. Providers and devices are at all of them, and go elsewhere when one fails."""

    HERE, AWAY = 3, 3

    def __init__(self, nodes, chance):
        self.nodes = nodes
        #: Former connections of devices, which are now at another node.
        self.former = []
        super().__init__(nodes[0], chance)
        #: A device for which the load has nothing.
        self.probe = away_device(nodes[0])
        for node in nodes:
            eventually(lambda: self.key["key"][1] in herald("provider", "list", "--data", node.data, "--json").stdout, what="the key")

    def __exit__(self, *_):
        super().__exit__()
        for listener in self.former:
            listener.close()

    def faults(self):
        faults = super().faults()
        for device in self.here:
            visits = [visit for each in self.listeners + self.former if each.device == device.id for visit in each.visits]
            found = disorder(visits, self.ledger.entries)
            faults += found
            for id in {fault.split()[0] for fault in found}:
                print(*self.story(id, visits), sep="\n")
        return faults

    def story(self, id, visits):
        """The moments of a notification that came out of order, and of those of its slot around it."""
        entries = self.ledger.entries
        slot = entries[id].slot
        yield f"{slot} saw {id} out of order:"
        came = [(moment, each, number) for number, visit in enumerate(visits) for moment, each in visit.came]
        position = [each for _, each, _ in came].index(id)
        for number, visit in enumerate(visits):
            yield f"  connection {number} at {visit.node}: begun {visit.began}, {len(visit.came)} came"
        for moment, each, number in came[max(0, position - 40) : position + 40]:
            if entries[each].slot == slot:
                yield f"  {moment} on connection {number}: {entries[each]}"

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
