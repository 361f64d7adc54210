"""Devices that move between the nodes of a cluster under load, clones of devices, and the order in which they see what comes."""

import collections
import concurrent.futures
import copy
import dataclasses
import json
import threading
import time

import mqtt_packets as mqtt
from cluster_load import ClusterLedger, Pusher
from mqtt_device import LONG, Identity, Refused
from mqtt_packets import Kind, Reason
from mqtt_wire import Closed
from service import PATIENCE, TOPIC, eventually, herald
from test_crash_ledger import drain

#: Takeovers of one device that a node permits, and the seconds in which it counts them, with time for a busy machine.
TAKEOVERS, MINUTE = 10, 100


@dataclasses.dataclass(eq=False)
class Visit:
    """One connection of a device: when it was begun, and what came on it, on the clock of the ledger."""

    began: int
    #: Pairs of the moment at which a notification came, and its id.
    came: list = dataclasses.field(default_factory=list)
    node: object = None
    link: object = None


def disorder(visits, entries):
    """Faults in the order in which one device got notifications.

    An older notification must not come after a newer one of its slot. It is older if it was answered before the newer one was
    begun, and the newer one was accepted. It comes after it if it comes later on the same connection, or on a connection that was
    begun later. Of two connections that a device has at once, neither is the later one. Notifications that expire have no order: one
    that has expired when it comes to a node is tried once, and not stored.
    """
    def note(newest, entry):
        if entry.status == 200 and not entry.expires:
            newest[entry.slot] = max(newest[entry.slot], entry.sent)

    faults = []
    for visit in visits:
        newest = collections.defaultdict(int)
        for other in visits:
            for moment, id in other.came:
                if moment < visit.began:
                    note(newest, entries[id])
        ids = [id for _, id in visit.came]
        faults += [f"{id} came twice on one connection" for id, times in collections.Counter(ids).items() if times > 1]
        for id in ids:
            entry = entries[id]
            if entry.answered is not None and not entry.expires and entry.answered < newest[entry.slot]:
                faults.append(f"{id} came after a newer one")
            note(newest, entry)
    return faults


def connected(identity, **options):
    """A connection of a device; again while the node cannot admit it, as on a machine that hardly runs it."""
    def attempt():
        try:
            return identity.connect(**options)
        except Refused as refusal:
            if refusal.reason != Reason.SERVER_UNAVAILABLE:
                raise
            return None

    return eventually(attempt, what="a node that admits the device")


class Shared:
    """An iterator that several threads share."""

    def __init__(self, numbers):
        self._numbers, self._lock = iter(numbers), threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self._lock:
            return next(self._numbers)


class Budget:
    """The takeovers of a device that its nodes will still permit."""

    def __init__(self):
        self._moments = collections.defaultdict(list)

    def has(self, node, count):
        now = time.monotonic()
        self._moments[node] = [moment for moment in self._moments[node] if moment > now - MINUTE]
        return len(self._moments[node]) + count <= TAKEOVERS

    def spend(self, node, count):
        self._moments[node] += [time.monotonic()] * count


class Player:
    """A device, and all that came to it. `move` and `finish` return what is wrong."""

    #: Takeovers of one move at each node that it may lead to.
    cost = 1
    #: The nodes to which one move leads.
    targets = 1

    def __init__(self, nodes, ledger, lock, name, keeps_session=False):
        self.nodes, self.ledger, self.lock, self.keeps_session = nodes, ledger, lock, keeps_session
        self.identity = Identity(nodes[0], name)
        self.id, self.path = self.identity.id, self.identity.path
        self.visits, self.visit = [], None
        self.budget = Budget()
        #: Seconds from the acceptance of a connection until the older one had ended.
        self.times = []
        #: Connections that a node ended because it could not serve for a while.
        self.dismissed = 0
        with connected(self.identity) as link:
            self.tokens = {TOPIC: link.register()}
            link.leave()

    def free_nodes(self):
        """The nodes to which it may move now."""
        at = self.visit and self.visit.node
        return [node for node in self.nodes if node is not at and self.budget.has(node, self.cost)]

    def can_move(self):
        return len(self.free_nodes()) >= self.targets

    def connect(self, node, connect=connected):
        """A new connection, which gets what comes for the app."""
        with self.lock:
            visit = Visit(self.ledger.moment(), node=node)
        identity = copy.copy(self.identity)
        identity.service = node
        expiry = LONG if self.keeps_session else None
        visit.link = connect(identity, clean=not self.keeps_session, expiry=expiry)
        self.visits.append(visit)
        return visit

    def subscribe(self, visit):
        if not visit.link.connack.session_present:
            number = visit.link.packet_id()
            visit.link.send(mqtt.subscribe(number, (f"apps/{TOPIC}", 1)))

    def take(self, visit, found, acknowledges=True):
        """Notes a packet that has come, and returns it. What was acknowledged counts as delivered."""
        if found.kind == Kind.PUBLISH and found.topic == f"apps/{TOPIC}":
            id = json.loads(found.payload)["id"]
            with self.lock:
                visit.came.append((self.ledger.moment(), id))
                if acknowledges:
                    self.ledger.seen.add(id)
        if found.kind == Kind.PUBLISH and acknowledges:
            visit.link.acknowledge(found)
        return found

    def catch_up(self, visit):
        """Takes what has come already."""
        while found := visit.link.read_if_begun():
            self.take(visit, found)

    def see_end(self, visit, since, last=None):
        """Takes what still comes on a connection that a newer one has replaced; `last` is what came last."""
        try:
            while True:
                last = self.take(visit, visit.link.read())
        except Closed:
            self.times.append(time.monotonic() - since)
        visit.link.close()
        if last and (last.kind, last.reason) == (Kind.DISCONNECT, Reason.SHUTTING_DOWN):
            self.dismissed += 1
            return []
        if not last or (last.kind, last.reason) != (Kind.DISCONNECT, Reason.TAKEN_OVER):
            return [f"{self.id}: a connection that was taken over ended with {last}"]
        return []

    def receive(self, visit, count, acknowledges=True):
        """Waits for so many notifications; the last one is acknowledged, or not."""
        while count:
            found = self.take(visit, visit.link.read(), acknowledges or count > 1)
            if found.kind == Kind.DISCONNECT and found.reason == Reason.SHUTTING_DOWN:
                self.dismissed += 1
                self.visit = None
                return []
            if found.kind == Kind.DISCONNECT:
                return [f"{self.id}: dismissed with {found}"]
            count -= found.kind == Kind.PUBLISH and found.topic == f"apps/{TOPIC}"
        return []

    def finish(self):
        """Loses its connection, without reading what is on its way."""
        if self.visit:
            self.visit.link.close()
            self.visit = None
        faults = disorder(self.visits, self.ledger.entries)
        for fault in faults:
            print(fault, *self.story(fault.split()[0]), sep="\n", flush=True)
        return faults

    def story(self, id):
        """All that is known of a notification, and of what came to the device about the time when it came."""
        entries = self.ledger.entries
        moments = [moment for visit in self.visits for moment, each in visit.came if each == id]
        for visit in self.visits:
            yield f"  connection at {visit.node.data.name}, begun at {visit.began}"
            for moment, each in visit.came:
                if any(abs(moment - other) < 2000 for other in moments):
                    entry = entries[each]
                    yield f"    {moment}: {each}, posted {entry.sent}, answered {entry.answered} {entry.status}, expires {entry.expires}"
        yield herald("journal", "--data", self.nodes[0].data, id, check=False).stdout


class Mover(Player):
    """A device that goes from node to node. Mostly its former connection is still there."""

    def move(self, chance):
        node, former = chance.choice(self.free_nodes()), self.visit
        self.budget.spend(node, self.cost)
        faults = []
        if former:
            self.catch_up(former)
            match chance.randrange(4):
                case 0:
                    former.link.leave()
                    former = None
                case 1:
                    former.link.close()
                    former = None
        self.visit = self.connect(node)
        since = time.monotonic()
        self.subscribe(self.visit)
        if former:
            faults += self.see_end(former, since)
        return faults + self.receive(self.visit, chance.randrange(1, 4), acknowledges=chance.random() < 0.8)


class Clones(Player):
    """Two copies of one device, which connect to two nodes at the same time, again and again."""

    cost = targets = 2

    def move(self, chance):
        nodes = chance.sample(self.free_nodes(), self.targets)
        for node in nodes:
            self.budget.spend(node, self.cost)
        former = self.visit
        if former:
            self.catch_up(former)
        gate = threading.Barrier(2)

        def connect(node):
            gate.wait(PATIENCE)
            try:
                visit = self.connect(node, Identity.connect)
            except Refused as refusal:
                # The other one was the newer before this one was accepted.
                assert refusal.reason == Reason.SERVER_UNAVAILABLE, refusal
                return None
            self.subscribe(visit)
            return visit

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            visits = [visit for visit in pool.map(connect, nodes) if visit]
        if not visits:
            # On a machine that hardly runs them, the nodes may admit neither.
            self.budget.spend(nodes[0], 1)
            visits.append(self.connect(nodes[0]))
            self.subscribe(visits[0])
        since = time.monotonic()
        faults = self.see_end(former, since) if former else []
        if len(visits) == 2:
            faults += self.see_one_end(visits, since)
        (self.visit,) = visits
        return faults + self.receive(self.visit, 2)

    def see_one_end(self, visits, since):
        """Takes what comes on two connections until one of them, which goes from the list, has been replaced."""
        while time.monotonic() < since + PATIENCE:
            for visit in list(visits):
                if (found := visit.link.read_if_begun(0.02)) and self.take(visit, found).kind == Kind.DISCONNECT:
                    visits.remove(visit)
                    return self.see_end(visit, since, found)
        raise AssertionError("two clones stay connected")


class Moves:
    """`players` that move, several at a time, while a provider at each node posts to all of them."""

    #: Moves that are under way at the same time.
    HANDS = 6
    #: Every so many rounds clones meet, if they may.
    CLONES_EACH = 8

    def __init__(self, nodes, rounds, devices, clones):
        self.nodes, self.rounds = nodes, rounds
        self.ledger, self.lock = ClusterLedger(), threading.Lock()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.movers = list(pool.map(lambda each: Mover(nodes, self.ledger, self.lock, f"mover{each}", each % 2), range(devices)))
            self.clones = list(pool.map(lambda each: Clones(nodes, self.ledger, self.lock, f"clones{each}"), range(clones)))
        self.players = self.movers + self.clones
        slots = [((player.id, TOPIC), player.tokens[TOPIC]) for player in self.players]
        certificate = {"certificate": nodes[0].provider_certificate()}
        self.key = {"key": nodes[0].provider_key()}
        self.pushers = [
            Pusher(node, certificate, slots, self.ledger, self.lock, rounds.random("load", number), lambda: None)
            for number, node in enumerate(nodes)
        ]
        self.faults = []
        self._idle = list(self.players)
        self._turns = threading.Condition()

    def play(self):
        """Plays all rounds; returns all that is wrong."""
        for pusher in self.pushers:
            pusher.start()
        numbers = iter(self.rounds)
        with concurrent.futures.ThreadPoolExecutor(self.HANDS) as pool:
            for hand in [pool.submit(self._turn, numbers) for _ in range(self.HANDS)]:
                hand.result()
        for pusher in self.pushers:
            pusher.ends.set()
        for pusher in self.pushers:
            pusher.join(PATIENCE)
            assert not pusher.is_alive(), "a provider waits in vain"
        self.faults += [repr(pusher.error) for pusher in self.pushers if pusher.error]
        for player in self.players:
            self.faults += player.finish()
        return self.faults + self._balance()

    def _turn(self, numbers):
        while not self.faults:
            with self._turns:
                number = next(numbers, None)
                if number is None:
                    return
                while not (player := self._next(number)):
                    # A node permits another takeover when a minute is over.
                    self._turns.wait(1)
                self._idle.remove(player)
            try:
                self.faults += [f"round {number}: {fault}" for fault in player.move(self.rounds.random(number))]
            except BaseException as error:
                self.faults.append(f"round {number}: {player.id}: {error!r}")
            with self._turns:
                self._idle.append(player)
                self._turns.notify_all()

    def _next(self, number):
        """The player who has waited longest of those that may move; in some rounds clones go first."""
        free = [player for player in self._idle if player.can_move()]
        kind = self.clones if number % self.CLONES_EACH == 0 else self.movers
        return next((player for player in free if player in kind), free[0] if free else None)

    def _balance(self):
        """All that is wrong with what came, after the last connection of each device."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            drained = [
                pool.submit(drain, self.nodes[number % len(self.nodes)], player, (TOPIC,), self.ledger, self.lock, self.key, True)
                for number, player in enumerate(self.players)
            ]
        for each in drained:
            each.result()
        entries = self.ledger.entries
        return [
            *(f"{id} was accepted, and is lost" for id in self.ledger.lost(time.time())),
            *(f"{id} was refused, and came" for id in self.ledger.seen & entries.keys() if entries[id].status not in (200, None)),
            *(f"an answer {status}" for status in {entry.status for entry in entries.values()} - {200, 503, None}),
        ]

    def figures(self):
        """Figures for the table of `make soak`."""
        times = [each for player in self.players for each in player.times]
        statuses = collections.Counter(entry.status for entry in self.ledger.entries.values())
        return {
            "connections": sum(len(player.visits) for player in self.players), "taken_over": len(times),
            "accepted": statuses[200], "refused": statuses[503], "unknown": statuses[None], "delivered": len(self.ledger.seen),
            "dismissed": sum(player.dismissed for player in self.players), "longest_end": f"{max(times, default=0):.2f} s",
        }
