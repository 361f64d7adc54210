"""The ledger of writes to a replicated stream.

A write has four outcomes: stored with a sequence, refused, not sent, or unknown (sent, and never answered). Whatever is stored
must be found later: in the log order, under its sequence, or replaced by one that comes later in the log.

The refusal of a condition says nothing for sure while leaders change. The write reaches the old leader and the new one: the old one
refuses it, and the new one stores it.
"""

import base64
import dataclasses
import itertools

#: Refusals of a condition: the subject has another sequence, or somebody else is writing to it.
CONDITIONAL = (10071, 10164)


@dataclasses.dataclass(eq=False)
class Write:
    """One write: begun and, if it was, answered, on a clock that only counts."""

    subject: str
    value: str
    begun: int
    answered: int = None
    #: Its sequence in the stream, if it was stored for sure.
    sequence: int = None
    #: Why it did not happen: the error code of a refusal, 503 if nobody took it, "not sent".
    refused: int | str | None = None


class EngineLedger:
    """All writes of all clients."""

    def __init__(self):
        self._clock = itertools.count()
        self._values = itertools.count(1)
        self.writes = []
        #: Two writes that were acknowledged with one sequence.
        self.collisions = []
        #: Writes whose condition was refused, and that are stored all the same.
        self.contradicted = set()
        self._places = {}
        #: Of each subject, the greatest sequence that was acknowledged.
        self.newest = {}

    def begin(self, subject):
        self.writes.append(Write(subject, f"v{next(self._values)}", next(self._clock)))
        return self.writes[-1]

    def stored(self, write, sequence):
        write.answered, write.sequence = next(self._clock), sequence
        other = self._places.setdefault(sequence, write)
        if other is not write:
            self.collisions.append(f"{other.value} and {write.value} were both acknowledged as {sequence}")
        self.newest[write.subject] = max(sequence, self.newest.get(write.subject, 0))

    @property
    def acknowledged(self):
        return [write for write in self.writes if write.sequence is not None]

    @property
    def unknown(self):
        return [write for write in self.writes if write.sequence is None and not write.refused]

    def faults(self, log):
        """Everything that is wrong in a log of entries that holds at least the newest of each subject."""
        found = []
        by_value = {write.value: write for write in self.writes}
        newest = {}
        places = {}
        for entry in log:
            sequence, subject, value = entry.sequence, entry.subject, entry.value
            newest[subject] = (sequence, value)
            if value in places:
                found.append(f"{value} is stored twice, at {places[value]} and {sequence}")
            places[value] = sequence
            write = by_value.get(value)
            if not write or write.subject != subject:
                found.append(f"{subject} has {value!r}, which nobody wrote there")
            elif write.refused in CONDITIONAL:
                self.contradicted.add(value)
            elif write.refused:
                found.append(f"{value} was refused ({write.refused}) and is stored at {sequence}")
            elif write.sequence not in (None, sequence):
                found.append(f"{value} was acknowledged as {write.sequence} and is stored as {sequence}")
        for subject, sequence in self.newest.items():
            if newest.get(subject, (0, None))[0] < sequence:
                found.append(f"{subject}: {sequence} was acknowledged, and the newest is {newest.get(subject)}")
        return found + self.collisions + self.disorder()

    def disorder(self):
        """Acknowledged writes whose order in the log contradicts the order in which they were answered and begun."""
        found, greatest = [], 0
        ends = sorted(self.acknowledged, key=lambda write: write.answered)
        index = 0
        for write in sorted(self.acknowledged, key=lambda write: write.begun):
            while index < len(ends) and ends[index].answered < write.begun:
                greatest = max(greatest, ends[index].sequence)
                index += 1
            if write.sequence <= greatest:
                found.append(f"{write.value} was begun after {greatest} was answered, and is {write.sequence}")
        return found


@dataclasses.dataclass
class Entry:
    """A message of a stream."""

    sequence: int
    subject: str
    value: str
    #: The sequence that its writer demanded of the entry before it; None for any.
    expected: int | None

    @classmethod
    def of(cls, message):
        headers = base64.b64decode(message.get("hdrs", "")).decode()
        demands = [line.split(":")[1] for line in headers.split("\r\n") if line.startswith("Nats-Expected-Last-Subject-Sequence:")]
        return cls(
            message["seq"], message["subject"], value_of(base64.b64decode(message.get("data", ""))), int(demands[0]) if demands else None
        )


def value_of(data):
    """The value in a message's body; what follows it is ballast."""
    return data.decode().split(" ")[0]


def broken_conditions(entries):
    """Conditional writes that the log has in a place where their condition does not hold."""
    newest, found = {}, []
    for entry in entries:
        before = newest.get(entry.subject, 0)
        if entry.expected is not None and entry.expected != before:
            found.append(f"{entry.value} at {entry.sequence} expected {entry.expected}, and {before} was there")
        newest[entry.subject] = entry.sequence
    return found
