"""The events of one history, and the oracle that says whether Herald kept its promises.

`History` is filled by `model_player` (or by hand, in the oracle's own tests) and knows no socket. `faults` is the oracle.
Places in the history are numbers that only grow; moments are milliseconds of the service's clock.
"""

import collections
import dataclasses
import itertools

#: The tolerance of a test's own clock readings, in milliseconds.
TOLERANCE = 2
#: The answer of the one drill in histories.
DRILL = (503, "ServiceUnavailable")
#: The answer to a post that cannot be stored.
UNSTORED = (503, "ServiceUnavailable")
#: Journal states that end a notification's way through the mailbox.
ENDS = ("delivered", "replaced", "discarded", "refused")


@dataclasses.dataclass(eq=False)
class Post:
    """One request of the provider."""

    id: str
    device: str
    topic: str
    #: The registration of the app to which its token belongs.
    generation: int
    #: Whether that registration stood when the request began.
    alive: bool
    #: False for `apns-expiration: 0` or in the past.
    storable: bool
    #: Whether the user had the app's notifications switched on.
    enabled: bool
    #: The time after which it need not be delivered; None for never (within the history).
    expires: int = None
    begun: int = 0
    answered: int = None
    status: int = None
    reason: str = None
    #: Whether a drill may have refused it.
    drilled: bool = False
    #: Whether the disk was full.
    full: bool = False
    #: The seconds that storing it took at least, and those until its answer.
    sync: float = 0
    seconds: float = None
    #: When it was sent, by the player's own clock.
    sent: float = 0
    #: Whether the journal may lack lines of it: the service was killed before they were surely written.
    uncertain: bool = False

    @property
    def slot(self):
        return self.device, self.topic

    def __str__(self):
        kind = "once" if not self.storable else f"until {self.expires}" if self.expires else "storable"
        return f"{self.id[:8]} ({kind}, generation {self.generation}, {self.begun}..{self.answered}: {self.status})"


@dataclasses.dataclass(eq=False)
class Connection:
    """One connection of a device."""

    number: int
    device: str
    opened: int
    #: The maximum of notifications in flight.
    window: int = 65535
    closed: int = None
    #: Topics that it was subscribed to at QoS 0 at some time.
    unacknowledging: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class Arrival:
    """One PUBLISH of a notification that a device read."""

    id: str
    connection: Connection
    at: int
    qos: int
    #: The service cannot have sent it before this moment: all that it had sent had been read.
    not_before: int
    #: The times when the device sent its PUBACK, and when the service had surely seen it.
    acknowledged: int = None
    settled: int = None


@dataclasses.dataclass(eq=False)
class Broadcast:
    """One message to a channel; the numbers of a history only grow."""

    number: int
    channel: str
    stored: bool
    status: int = None
    #: The time until which it is surely kept, if it is stored.
    kept: int = None


@dataclasses.dataclass(eq=False)
class Copy:
    """One PUBLISH of a broadcast that a device read."""

    broadcast: Broadcast
    connection: Connection


@dataclasses.dataclass(eq=False)
class JournalLine:
    id: str
    state: str
    #: Milliseconds of the service's clock.
    time: int
    reason: str = None
    replacement: str = None


class History:
    """All that the provider and the devices did and saw."""

    def __init__(self):
        self._places = itertools.count(1)
        self.posts = {}
        self.connections = []
        self.arrivals = []
        self.broadcasts = []
        self.copies = []
        #: (device, channel) that subscribed at the end → the latest time of the service until then.
        self.listeners = {}
        #: (device, topic, generation) → the place of the UNSUBACK that ended the registration.
        self.ended = {}
        #: (device, topic) → places at which the user switched the app's notifications off.
        self.disabled = collections.defaultdict(list)
        #: Places at which the whole journal had surely been written.
        self.written = []
        self.kills = []
        self.journal = []
        #: The service's clock at the end, and the text of each step for the readers of a fault.
        self.now = 0
        self.log = []

    def place(self):
        return next(self._places)

    def note(self, text):
        self.log.append(f"{self.place():>5}  {text}")

    def killed(self):
        """Marks the posts whose latest journal lines may be lost: those touched since the journal was surely written."""
        now, last = self.place(), self.written[-1] if self.written else 0
        self.kills.append(now)
        done = {arrival.id for arrival in self.arrivals if arrival.settled and arrival.settled < last}
        touched = {arrival.id for arrival in self.arrivals if max(arrival.at, arrival.acknowledged or 0) > last}
        # With a connection ends what was on its way, read or not.
        dropped = {end.device for end in self.connections if (end.closed or now) > last}
        for post in self.posts.values():
            unfinished = post.device in dropped and post.id not in done
            if (post.answered or post.begun) > last or post.id in touched or unfinished:
                post.uncertain = True

    def about(self, *ids):
        """The steps that name one of these notifications, for people."""
        return [line for line in self.log if any(id[:8] in line for id in ids)]


def surely_before(first, second):
    """Whether the service had answered the one before the other was begun."""
    return first.answered is not None and first.answered < second.begun


class Oracle:
    """Checks a history against the promises; each check adds sentences to `faults`."""

    def __init__(self, history):
        self.history = history
        self.faults = []
        self.arrivals = collections.defaultdict(list)
        for arrival in history.arrivals:
            self.arrivals[arrival.id].append(arrival)
        self.lines = collections.defaultdict(list)
        for line in history.journal:
            self.lines[line.id].append(line)
        #: The posts that are stored, by device, topic and registration.
        self.stored = collections.defaultdict(list)
        for post in history.posts.values():
            if post.storable and post.enabled and post.alive and post.status in (200, None):
                self.stored[(post.slot, post.generation)].append(post)

    def judge(self):
        for post in self.history.posts.values():
            self.check_answer(post)
            self.check_arrivals(post)
            if post.status == 200:
                self.check_fate(post)
                self.check_journal(post)
        for connection in self.history.connections:
            self.check_connection(connection)
        self.check_broadcasts()
        return self.faults

    def fault(self, *parts):
        self.faults.append(" ".join(map(str, parts)))

    # Answers to the provider

    def check_answer(self, post):
        if post.status is None:
            return
        wanted = (200, None) if post.alive else (410, "Unregistered")
        if post.drilled and (post.status, post.reason) == DRILL:
            return
        if post.full and (post.status, post.reason) == UNSTORED:
            return
        if post.status == 200 and post.storable and post.enabled and post.seconds is not None and post.seconds < post.sync:
            self.fault(post, f"was answered after {post.seconds:.3f} s, before the sync of {post.sync} s had ended")
        if (post.status, post.reason) != wanted:
            self.fault(post, "was answered", post.status, post.reason, "and not", *wanted)

    # Arrivals at the devices

    def check_arrivals(self, post):
        arrivals = self.arrivals[post.id]
        end = self.history.ended.get((*post.slot, post.generation))
        for arrival in arrivals:
            if arrival.connection.device != post.device:
                self.fault(post, "reached", arrival.connection.device)
            # A notification that was sent and then could not be stored is refused.
            if post.status not in (200, None) and not post.full:
                self.fault(post, "was refused, and delivered")
            if end and arrival.at > end:
                self.fault(post, "was delivered to a registration that had ended")
            if post.expires is not None and post.expires + TOLERANCE <= arrival.not_before:
                self.fault(post, "was delivered after its time:", arrival.not_before, "and later")
            if not post.storable and arrival.connection.closed and arrival.connection.closed < post.begun:
                self.fault(post, "was not to be stored, and came to an earlier connection")
            if not post.storable and post.answered and arrival.connection.opened > post.answered:
                self.fault(post, "was not to be stored, and came to a later connection")
            if not post.enabled:
                self.fault(post, "was delivered although the user had switched the app off")
        for first, second in itertools.combinations(arrivals, 2):
            if first.connection is second.connection:
                self.fault(post, "came twice on connection", first.connection.number)
            if self.is_on_disk(first.settled, second.connection.opened):
                self.fault(post, "came again although it had been acknowledged")

    def is_on_disk(self, settled, later):
        """Whether the service's state at the first place was surely written before the other, and before any kill."""
        if settled is None:
            return False
        end = min([kill for kill in self.history.kills if kill > settled] + [later])
        return any(settled < place < end for place in self.history.written)

    def check_connection(self, connection):
        """The order of what one device saw."""
        mine = [arrival for arrival in self.history.arrivals if arrival.connection is connection]
        posts = self.history.posts
        in_flight = 0
        for at, change in sorted(
            [(arrival.at, 1) for arrival in mine if arrival.qos]
            + [(arrival.acknowledged, -1) for arrival in mine if arrival.acknowledged]
        ):
            in_flight += change
            if in_flight > connection.window:
                self.fault(f"{in_flight} were in flight on connection {connection.number}, not {connection.window}")
                break
        for arrival in mine:
            post = posts[arrival.id]
            if not post.storable:
                continue
            for later in self.stored[(post.slot, post.generation)]:
                if later is post or not surely_before(post, later):
                    continue
                if any(other.connection is connection and other.at < arrival.at for other in self.arrivals[later.id]):
                    self.fault(post, "came after the newer", later, "on connection", connection.number)
                elif later.status == 200 and later.answered < connection.opened and self.is_kept(later):
                    self.fault(post, "came from storage although", later, "had replaced it")

    def is_kept(self, later):
        """Whether `later` must have replaced earlier posts: a kill may lose only its own acknowledgement."""
        return not later.uncertain or not any(arrival.acknowledged for arrival in self.arrivals[later.id])

    # Broadcasts

    def check_broadcasts(self):
        newest = {}
        for copy in self.history.copies:
            one, place = copy.broadcast, (copy.connection, copy.broadcast.channel)
            if one.status not in (200, None):
                self.fault("broadcast", one.number, "was refused, and delivered")
            if newest.get(place, 0) > one.number:
                self.fault("broadcast", one.number, "came after the newer", newest[place])
            newest[place] = max(newest.get(place, 0), one.number)
        for (device, channel), time in self.history.listeners.items():
            stored = [one for one in self.history.broadcasts if one.channel == channel and one.stored and one.status == 200]
            seen = [number for (connection, name), number in newest.items() if (connection.device, name) == (device, channel)]
            if stored and stored[-1].kept > time and max(seen, default=0) < stored[-1].number:
                self.fault("broadcast", stored[-1].number, "was stored, and", device, "did not get it")

    # The fate of each post

    def is_seen(self, post):
        return any(arrival.acknowledged or arrival.qos == 0 for arrival in self.arrivals[post.id])

    def is_unstored(self, post, slot, generation):
        is_refused = post.full and post.storable and post.status == UNSTORED[0]
        return is_refused and (post.slot, post.generation) == (slot, generation) and self.is_seen(post)

    def is_over(self, post):
        return post.expires is not None and post.expires <= self.history.now

    def is_lost_at_qos_0(self, post):
        """Whether it may have been written to a connection that ended before the device read it."""
        return any(
            post.topic in connection.unacknowledging
            and connection.device == post.device
            and (connection.closed or post.begun + 1) > post.begun
            for connection in self.history.connections
        )

    def check_fate(self, post):
        """Every 200 is delivered, replaced, expired, or discarded for a reason; the history ended with nothing stored."""
        slot = self.stored[(post.slot, post.generation)]
        if not post.storable or not post.enabled or self.is_seen(post) or self.is_over(post):
            return
        if self.history.ended.get((*post.slot, post.generation), 0) > post.begun:
            return
        if any(place > post.begun for place in self.history.disabled[post.slot]):
            return
        if self.is_lost_at_qos_0(post):
            return
        # The device may have acknowledged one that could not be stored.
        slot = slot + [other for other in self.history.posts.values() if self.is_unstored(other, post.slot, post.generation)]
        ends = (other for other in slot if self.is_seen(other) or self.is_over(other))
        if not any(not surely_before(other, post) for other in ends):
            self.fault(post, "is lost: neither delivered, nor replaced, nor expired")

    # The journal

    def check_journal(self, post):
        lines = self.lines[post.id]
        states = [line.state for line in lines]
        seen = self.arrivals[post.id]
        # A post that is acknowledged after its app was removed had ended before.
        removed = self.history.ended.get((*post.slot, post.generation))
        acknowledged = [a for a in seen if a.settled and (removed is None or a.acknowledged < removed)]
        if states.count("received") != 1 and not (post.uncertain and "received" not in states):
            self.fault(post, "was received", states.count("received"), "times by the journal:", states)
        for line in lines:
            self.check_line(post, line, seen)
        if post.uncertain:
            return
        if not any(state.startswith(ENDS) for state in states) and not self.is_over(post):
            self.fault(post, "has no end in the journal:", states)
        told = any(state.startswith(("delivered", "replaced")) for state in states)
        if acknowledged and not told and not self.was_discarded(lines, "unregistered"):
            self.fault(post, "was acknowledged, and the journal says", states)

    def was_discarded(self, lines, reason):
        return any(line.state.startswith("discarded") and reason in (line.reason or "") for line in lines)

    def check_line(self, post, line, seen):
        if line.state in ("delivered", "delivered from storage"):
            if not any(arrival.acknowledged for arrival in seen):
                self.fault(post, "was not acknowledged, and the journal says", line.state)
        elif line.state.endswith(", unacknowledged"):
            if not any(arrival.qos == 0 for arrival in seen) and not self.is_lost_at_qos_0(post):
                self.fault(post, "was not seen at QoS 0, and the journal says", line.state)
        elif line.state == "replaced":
            other = self.history.posts.get(line.replacement)
            if other is None or other.slot != post.slot or not other.storable or surely_before(other, post):
                self.fault(post, "was replaced, by the journal, by", other or line.replacement)
        elif line.state.startswith("discarded") and line.reason == "expired":
            if post.expires is None or line.time + TOLERANCE < post.expires:
                self.fault(post, "was discarded as expired at", line.time)
        elif line.state.startswith("discarded") and line.reason == "unregistered":
            if (*post.slot, post.generation) not in self.history.ended:
                self.fault(post, "was discarded as unregistered, and the app is there")
        elif line.state.startswith("discarded") and line.reason == "disabled":
            if post.enabled and not any(place > post.begun for place in self.history.disabled[post.slot]):
                self.fault(post, "was discarded as disabled, and is not")
        elif line.state.startswith("discarded") and "not to be stored" in (line.reason or ""):
            if post.storable or any(arrival.settled for arrival in seen):
                self.fault(post, "was discarded as not to be stored, and was acknowledged or to be stored")
        elif line.state.startswith("discarded") or line.state.startswith("refused"):
            self.fault(post, "has an end that nothing in this history explains:", line.state, line.reason)


def faults(history):
    """A sentence for every broken promise."""
    return Oracle(history).judge()
