"""Plays a random history against the real service: one provider, two devices, an operator, all on one thread.

Steps are plain data that a seed makes; whether one means anything in the state of the moment is seen when it is played
(who is not connected acknowledges nothing). Everything that is done and seen goes into a `model_oracle.History`.
"""

import contextlib
import datetime
import itertools
import json
import random
import ssl
import time
import urllib.error
import urllib.request
import uuid

import channels
from disk_faults import full_disk, slow_disk
from model_device import Device
from model_oracle import DRILL, ENDS, Broadcast, History, JournalLine, Post
from mqtt_wire import Closed
from provider import Disconnected, Provider
from service import PATIENCE, TOPIC, eventually

TOPICS = (TOPIC, "com.example.mail")
#: The kinds of steps, and their weights.
WEIGHTS = {
    "post": 34, "acknowledge": 14, "connect": 9, "subscribe": 10, "drop": 6, "leave": 3, "unsubscribe": 4,
    "advance": 7, "power": 3, "settings": 3, "journal": 3, "stop": 2, "kill": 2,
    "channel": 2, "listen": 4, "broadcast": 6, "drill": 2, "jump": 3, "accept": 2, "full": 1, "slow": 2,
}
STEPS = 60
#: Channels of one history.
CHANNELS = 3
#: Seconds that each sync of a slow disk takes.
SYNC_SECONDS = 0.05
#: Seconds in which an app gets back one background notification on a device (three an hour), and one more.
BUDGET_INTERVAL = 1201
#: Milliseconds for which a channel keeps its newest broadcast at most.
BROADCAST_TIME = 8 * 3600 * 1000


def steps(seed, count=STEPS):
    """The steps of a history: the same for the same seed."""
    chance = random.Random(seed)
    made = [("connect", 0, 5, True, 3600, None), ("subscribe", 0, TOPICS, 1, "#")]
    made += [("connect", 1, 4, False, 0, None), ("subscribe", 1, TOPICS, 1, "#")]
    while len(made) < count:
        made.append(_step(chance, chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]))
    return made


def _step(chance, kind):
    device, topic = chance.randrange(2), chance.choice(TOPICS)
    match kind:
        case "post":
            manner = chance.choice(("plain", "once", "expiring", "collapse", "background", "past"))
            size, stale = chance.choice((1, 1, 2, 5, 30)), chance.random() < 0.1
            return kind, device, topic, manner, size, chance.random() < 0.5, chance.choice((6, 9, 20, 300)), stale
        case "connect":
            window = chance.choice((None, None, 1, 3))
            return kind, device, chance.choice((5, 4)), chance.random() < 0.4, chance.choice((0, 60, 3600)), window
        case "subscribe":
            topics = chance.choice((TOPICS, (topic,)))
            return kind, device, topics, chance.choice((1, 1, 1, 0)), chance.choice(("#", "#", ""))
        case "acknowledge":
            return kind, device, chance.choice(("all", "all", "first", "last"))
        case "unsubscribe":
            return kind, device, topic
        case "advance":
            return kind, chance.choice((0.5, 2, 5, 30, 400, 5000))
        case "power" | "settings":
            return kind, device, topic, chance.random() < 0.5
        case "kill":
            return kind, chance.choice((0, 0, 3, 20)), device, topic
        case "journal" | "stop" | "drill" | "slow" | "accept":
            return (kind,)
        case "channel":
            return kind, topic
        case "listen":
            return kind, device, chance.randrange(CHANNELS)
        case "broadcast":
            return kind, chance.randrange(CHANNELS), chance.random() < 0.7
        case "jump":
            return kind, chance.choice((2 * 3600, 2 * 86_400))
        case "full":
            return kind, device, topic, chance.choice((1, 2, 5)), chance.choice(("", "acknowledge", "drop", "kill"))
        case _:
            return kind, device


class Player:
    """Plays one history on a service that other histories may have used before."""

    def __init__(self, service, certificate, devices, machine, clock=0):
        self.service, self.certificate, self.machine = service, certificate, machine
        #: Milliseconds that the service's clock is ahead.
        self.clock = clock
        self.history = History()
        #: (device, topic) → the newest token; the generation of the registration; whether it stands; whether switched on.
        self.tokens, self.generations, self.alive, self.disabled = {}, {}, {}, {}
        self.retired = []
        #: (topic, identifier) of each channel; whether the drill may be active.
        self.channels, self.drilled = [], False
        #: Whether the disk is full; the fault of a slow disk.
        self.is_full, self.slowness = False, None
        #: How far the machine's clock was ahead, in seconds, when the operator accepted it: at most, and the last time.
        self.accepted = self.trusted = 0
        #: The latest time that was certain for the service: what expired until then may be gone, even if the clock went back.
        self.certain_time = 0
        self._quiet = 0
        self.devices = [Device(self, path, id) for path, id in devices]
        self.provider = self.connect_provider()

    def connect_provider(self):
        return Provider(self.service, certificate=self.certificate)

    def now(self):
        return int((time.time() + self.machine.ahead) * 1000) + self.clock

    def certain_now(self):
        """The time of which the service is certain: of a jump that is not accepted, the earlier one."""
        return self.now() + 1000 * min(0, self.trusted - self.machine.ahead)

    def note_certain_time(self):
        self.certain_time = max(self.certain_time, self.certain_now())

    def play(self, steps):
        for kind, *arguments in steps:
            self.history.note(f"[{kind} {arguments}]")
            self.try_step(getattr(self, kind), *arguments)
            for device in self.devices:
                self.try_step(device.drain)
        self.settle()
        return self.history

    def try_step(self, step, *arguments):
        """Plays a step, in which the service may close a connection after a jump."""
        try:
            step(*arguments)
        except (Closed, OSError):
            lost = [device for device in self.devices if device.link and device.may_be_closed]
            if not lost:
                raise
            for device in lost:
                device.drop()

    def close(self):
        self.end_slowness()
        self.provider.close()
        for device in self.devices:
            if device.link:
                device.link.close()

    # Registrations, as the SUBACKs and UNSUBACKs have it.

    def registered(self, device, topic):
        if not self.alive.get((device, topic)):
            self.generations[device, topic] = self.generations.get((device, topic), -1) + 1
            self.alive[device, topic] = True
            # An app that is installed again begins with its notifications switched on.
            self.disabled.pop((device, topic), None)

    def unregistered(self, device, topic):
        slot = device, topic
        if self.alive.get(slot):
            self.alive[slot] = False
            self.history.ended[(*slot, self.generations[slot])] = self.history.place()
            if slot in self.tokens:
                self.retired.append((slot, self.generations[slot], self.tokens.pop(slot)))

    # The provider.

    def post(self, device, topic, manner, size, prompt, seconds, stale=False):
        streams = self.send(device, topic, manner, size, seconds, stale)
        if prompt and streams:
            # Within the grace, if the machine is not too busy: then nothing of it is ever stored.
            for _ in range(size):
                self.devices[device].glance(0.02)
        for stream, post in streams:
            answer = self.provider.answer(stream)
            self.answered(post, answer)

    def send(self, device, topic, manner, size, seconds, stale=False):
        slot = self.devices[device].id, topic
        generation, token, alive = self.generations.get(slot), self.tokens.get(slot), True
        if stale and self.retired:
            slot, generation, token = self.retired[-1]
            alive = False
        if token is None:
            return []
        options = {"priority": 5, "push_type": "background"} if manner == "background" else {}
        expires = None
        if manner == "expiring":
            # Never so soon that it is over when a service that was stalled for half a minute reads it.
            expires = options["expiration"] = self.now() // 1000 + 31 + seconds
        elif manner in ("once", "past"):
            options["expiration"] = 0 if manner == "once" else self.now() // 1000 - 5
        elif manner == "collapse":
            options["collapse_id"] = "one"
        streams = []
        for _ in range(size):
            post = Post(
                str(uuid.uuid4()), *slot, generation, alive, manner not in ("once", "past"),
                not self.disabled.get(slot), expires and expires * 1000, self.history.place(), drilled=self.drilled,
                full=self.is_full, sync=self.sync_time(device, slot[1]), sent=time.monotonic(),
            )
            self.history.posts[post.id] = post
            aps = {"content-available": 1} if manner == "background" else {"alert": "x" * 40}
            body = {"aps": aps, "id": post.id}
            streams.append((self.provider.send(token, body, id=post.id, topic=slot[1], **options), post))
            self.history.note(f"posts {post}")
        return streams

    def sync_time(self, device, topic):
        """The seconds that it takes at least to store a notification that is surely stored."""
        device = self.devices[device]
        # The service may believe in a connection that is gone, and may have written to it what needs no acknowledgement.
        is_away = not device.link and device.connection and topic not in device.connection.unacknowledging
        return SYNC_SECONDS if self.slowness and is_away else 0

    def answered(self, post, answer):
        post.answered, post.status, post.reason = self.history.place(), answer.status, answer.reason
        post.seconds = time.monotonic() - post.sent
        self.history.note(f"answer {post}")

    # The devices.

    def connect(self, device, version, clean, expiry, window):
        self.devices[device].connect(version, clean, expiry, window)

    def subscribe(self, device, topics, qos, suffix):
        self.devices[device].subscribe(topics, qos, suffix)

    def acknowledge(self, device, which):
        self.devices[device].acknowledge(which)

    def drop(self, device):
        self.devices[device].drop()

    def leave(self, device):
        self.devices[device].leave()

    def unsubscribe(self, device, topic):
        self.devices[device].unsubscribe(topic)

    def power(self, device, _topic, saving):
        self.devices[device].tell("device/power", {"saving": saving})

    def settings(self, device, topic, enabled):
        slot = self.devices[device].id, topic
        if self.alive.get(slot) and self.devices[device].tell(f"apps/{topic}/settings", {"enabled": enabled}):
            self.disabled[slot] = not enabled
            if not enabled:
                self.history.disabled[slot].append(self.history.place())

    # Channels.

    def channel(self, topic):
        # The drill would refuse it.
        if len(self.channels) < CHANNELS and not self.drilled:
            self.channels.append((topic, channels.create(self.provider, 1, topic)))

    def listen(self, device, number):
        if number < len(self.channels):
            self.devices[device].listen(*self.channels[number])

    def broadcast(self, number, stored):
        if number >= len(self.channels) or self.drilled:
            return
        topic, channel = self.channels[number]
        one = Broadcast(len(self.history.broadcasts) + 1, channel, stored, kept=self.certain_now() + BROADCAST_TIME)
        self.history.broadcasts.append(one)
        expiration = self.now() // 1000 + 20 * 86_400 if stored else 0
        payload = {**channels.LIVE, "broadcast": one.number}
        one.status = channels.send(self.provider, channel, payload, topic, expiration=expiration).status
        self.history.note(f"broadcast {one.number} to {channel}: {one.status}")

    # The operator.

    def drill(self):
        self.drilled = not self.drilled
        if self.drilled:
            self.ask("/v1/drills", {"kind": "refuse", "reason": DRILL[1], "share": "50%", "for": "1h"})
        else:
            self.ask("/v1/drills/stop", {})

    def jump(self, seconds):
        """The machine's clock jumps ahead, or returns; that is a jump back if the operator has accepted it."""
        for device in self.devices:
            device.drain()
            device.may_be_closed = True
        self.note_certain_time()
        self.machine.move(0 if self.machine.ahead else seconds)
        for device in self.devices:
            device.drained = min(device.drained, self.now())

    def accept(self):
        """The operator accepts the machine's clock as it is."""
        self.ask("/v1/clock/accept", {})
        self.trusted = self.machine.ahead
        self.accepted = max(self.accepted, self.trusted)
        self.note_certain_time()

    def advance(self, seconds):
        for device in self.devices:
            device.drain()
        self.ask("/v1/clock/advance", {"seconds": seconds})
        self.clock += int(seconds * 1000)
        self.note_certain_time()

    def full(self, device, topic, size, act):
        """The disk is full while a device gets notifications, and acknowledges them, vanishes, or sees the service killed."""
        self.end_slowness()
        self.is_full = True
        with contextlib.closing(full_disk(self.service)):
            streams = self.send(device, topic, "plain", size, 0)
            if act == "acknowledge":
                for _ in range(size):
                    self.devices[device].glance(0.02)
            elif act == "drop":
                self.drop(device)
            for stream, post in streams:
                self.answered(post, self.provider.answer(stream))
            if act == "kill":
                self.kill(1, device, topic)
        self.is_full = False
        eventually(self.is_accepting, what="the store that can be written again")

    def is_accepting(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.service.listeners['console']}/health", timeout=PATIENCE):
                return True
        except urllib.error.HTTPError:
            return False

    def slow(self):
        """The disk becomes slow, or fast again."""
        if self.slowness:
            self.end_slowness()
        else:
            self.slowness = slow_disk(self.service, SYNC_SECONDS)

    def end_slowness(self):
        if self.slowness:
            self.slowness.close()
            self.slowness = None

    def journal(self):
        """Queries the journal, which writes all of it."""
        place = self.history.place()
        self.ask(f"/v1/journal?device={self.devices[0].id}&limit=1")
        self.history.written.append(place)

    def stop(self):
        assert self.service.stop() == 0
        self.end_connections()
        self.history.written.append(self.history.place())
        self.begin()

    def kill(self, size, device, topic):
        streams = self.send(device, topic, "plain", size, 0)
        self.service.kill()
        for stream, post in streams:
            answer = self.provider.answers[stream]
            try:
                self.provider.pump(lambda: answer.ended)
            except (Disconnected, OSError, ssl.SSLError):
                pass
            if answer.ended and answer.reset is None:
                self.answered(post, answer)
        self.end_connections()
        self.history.killed()
        self.begin()

    def end_connections(self):
        self.provider.close()
        for device in self.devices:
            if device.link:
                device.read_rest()

    def begin(self):
        # It ended with the process.
        self.end_slowness()
        self.service.start("--clock", f"+{self.clock}ms")
        self.drilled = False
        self.provider = self.connect_provider()

    def ask(self, path, body=None):
        token = (self.service.data / "run" / "admin.token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.service.listeners['console']}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    # The end.

    def settle(self):
        """Reconnects every device, takes all stored notifications, and reads the journal."""
        self.end_slowness()
        if self.machine.ahead:
            self.try_step(self.jump, 0)
        if self.accepted:
            self.accept()
        if self.drilled:
            self.drill()
        for device in self.devices:
            device.drop()
            device.connections = 0
            topics = [topic for topic in TOPICS if self.alive.get((device.id, topic))]
            device.connect(5, False, 3600, None)
            device.tell("device/power", {"saving": False})
            if topics:
                device.subscribe(topics, 1, "#")
            for topic, channel in self.channels:
                device.listen(topic, channel)
                self.note_certain_time()
                self.history.listeners[device.id, channel] = max(self.now(), self.certain_time)
        eventually(self.is_settled, what="the end of deliveries")
        if self.waiting():
            # For its app's background budget: of each one waits at most, and what that costs has come back by then.
            self.advance(self.accepted + BUDGET_INTERVAL)
            # The oracle says what is wrong with one that still waits then.
            with contextlib.suppress(AssertionError):
                eventually(lambda: self.is_settled() and not self.waiting())
        self.history.journal = self.read_journal()
        self.history.now = max(self.now(), self.certain_time)

    def read_journal(self):
        entries = (self.ask(f"/v1/journal?device={device.id}&limit=10000") for device in self.devices)
        return [_line(entry) for entry in itertools.chain(*entries)]

    def waiting(self):
        """The stored posts that have not ended in the journal. The oracle finds those that are missing for good."""
        # Not by the last line: lines come by their time, and the clock goes back.
        lines = self.read_journal()
        stored = {line.id for line in lines if line.state == "stored"}
        ended = {line.id for line in lines if line.state.startswith(ENDS)}
        return [id for id in stored - ended if self.must_end(id)]

    def must_end(self, id):
        """Whether the journal cannot lack the line, and time has not ended it."""
        post = self.history.posts[id]
        return not post.uncertain and not (post.expires and post.expires <= max(self.now(), self.certain_time))

    def is_settled(self):
        """Whether nothing has come for some time. The oracle finds what is missing."""
        before = len(self.history.arrivals)
        for device in self.devices:
            device.drain()
            device.acknowledge("all")
            device.drain()
        self._quiet = self._quiet + 1 if len(self.history.arrivals) == before else 0
        return self._quiet >= 5


def _line(entry):
    """A line of the admin API's journal."""
    moment = datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00"))
    replacement = entry.get("replacement")
    return JournalLine(
        entry["id"].lower(), entry["state"], round(moment.timestamp() * 1000), entry.get("reason"),
        replacement and replacement.lower(),
    )
