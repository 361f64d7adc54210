"""Writers and readers on a replicated stream, and the ledger of what was acknowledged to them.

A write has four outcomes: stored with a sequence, refused, not sent, or unknown (sent, and never answered). Whatever is stored
must be found later: in the log order, under its sequence, or replaced by one that comes later in the log.
"""

import asyncio
import base64
import dataclasses
import itertools
import json

import nats
from nats.errors import ConnectionClosedError, NoRespondersError, OutboundBufferLimitError
from nats.errors import TimeoutError as NATSTimeoutError

#: Seconds after which the outcome of a write is unknown. An election takes 4 to 9.
ANSWER = 3

#: A stream as a cluster's mailbox has it: only the newest of each subject.
BOX = {
    "name": "BOX", "subjects": ["box.>"], "num_replicas": 3, "storage": "file", "max_msgs_per_subject": 1, "allow_direct": True,
    "allow_msg_ttl": True, "deny_delete": True, "deny_purge": True, "discard": "old", "retention": "limits", "max_msgs": -1,
    "max_bytes": -1, "max_age": 0, "duplicate_window": 100_000_000,
}
#: A stream that keeps everything, so that the order of conditional writes can be checked afterwards.
RECORDS = BOX | {"name": "RECORDS", "subjects": ["record.>"], "max_msgs_per_subject": -1}


@dataclasses.dataclass(eq=False)
class Write:
    """One write: begun and, if it was, answered, on a clock that only counts."""

    subject: str
    value: str
    begun: int
    answered: int = None
    #: Its sequence in the stream, if it was stored for sure.
    sequence: int = None
    #: It never happened: the server said so, or nobody took it.
    refused: bool = False


class EngineLedger:
    """All writes of all clients."""

    def __init__(self):
        self._clock = itertools.count()
        self._values = itertools.count(1)
        self.writes = []
        #: Of each subject, the greatest sequence that was acknowledged.
        self.newest = {}

    def begin(self, subject):
        self.writes.append(Write(subject, f"v{next(self._values)}", next(self._clock)))
        return self.writes[-1]

    def stored(self, write, sequence):
        write.answered, write.sequence = next(self._clock), sequence
        self.newest[write.subject] = max(sequence, self.newest.get(write.subject, 0))

    @property
    def acknowledged(self):
        return [write for write in self.writes if write.sequence is not None]

    @property
    def unknown(self):
        return [write for write in self.writes if write.sequence is None and not write.refused]

    def faults(self, log):
        """Compares with a log of (sequence, subject, value) that holds at least the newest of each subject; what is wrong."""
        found = []
        by_value = {write.value: write for write in self.writes}
        newest = {}
        places = {}
        for sequence, subject, value in sorted(log):
            newest[subject] = (sequence, value)
            if value in places:
                found.append(f"{value} is stored twice, at {places[value]} and {sequence}")
            places[value] = sequence
            write = by_value.get(value)
            if not write or write.subject != subject:
                found.append(f"{subject} has {value!r}, which nobody wrote there")
            elif write.refused:
                found.append(f"{value} was refused and is stored at {sequence}")
            elif write.sequence not in (None, sequence):
                found.append(f"{value} was acknowledged as {write.sequence} and is stored as {sequence}")
        for subject, sequence in self.newest.items():
            if newest.get(subject, (0, None))[0] < sequence:
                found.append(f"{subject}: {sequence} was acknowledged, and the newest is {newest.get(subject)}")
        return found + self.disorder()

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


class EngineClient:
    """One connection with the outcomes of its writes told apart."""

    def __init__(self, connection):
        self.connection = connection

    @classmethod
    async def connect(cls, *urls):
        async def quiet(_):
            pass

        return cls(await nats.connect(
            servers=list(urls), max_reconnect_attempts=-1, reconnect_time_wait=0.1, connect_timeout=2, ping_interval=2,
            max_outstanding_pings=2, error_cb=quiet, pending_size=-1, dont_randomize=len(urls) == 1,
        ))

    async def close(self):
        await self.connection.close()

    async def ask(self, subject, question=None, timeout=10):
        """A question of the API; again while nobody answers, as during an election."""
        end = asyncio.get_running_loop().time() + 60
        while True:
            try:
                answer = await self.connection.request(subject, json.dumps(question or {}).encode(), timeout=timeout)
                body = json.loads(answer.data)
                # 10008 and 10009: no leader yet.
                if body.get("error", {}).get("code") != 503:
                    return body
            except (NATSTimeoutError, NoRespondersError, ConnectionClosedError, OutboundBufferLimitError):
                pass
            assert asyncio.get_running_loop().time() < end, f"{subject} is not answered"
            await asyncio.sleep(0.05)

    async def make_stream(self, stream):
        answer = await self.ask(f"$JS.API.STREAM.CREATE.{stream['name']}", stream)
        assert "error" not in answer, answer

    async def information(self, stream, **question):
        return await self.ask(f"$JS.API.STREAM.INFO.{stream}", question)

    async def put(self, ledger, write, headers=None):
        """Publishes, and notes the outcome. Returns the error code of a refusal."""
        try:
            answer = await self.connection.request(write.subject, write.value.encode(), timeout=ANSWER, headers=headers)
        except NoRespondersError:
            write.refused = True
            return 503
        except OutboundBufferLimitError:
            write.refused = True
            return None
        except (NATSTimeoutError, ConnectionClosedError, OSError):
            return None
        body = json.loads(answer.data)
        if "error" in body:
            write.refused = True
            return body["error"].get("err_code", 0)
        ledger.stored(write, body["seq"])
        return None

    async def store(self, ledger, subject):
        """Publishes until one write is acknowledged, and returns that."""
        async with asyncio.timeout(120):
            while True:
                write = ledger.begin(subject)
                await self.put(ledger, write)
                if write.sequence:
                    return write
                await asyncio.sleep(0.05)

    async def newest(self, stream, subjects, timeout=2):
        """The newest of each subject by any replica: (sequence, subject, value) of each, and the sequence up to which it knew all.

        None if an answer is missing, or if the replica knew none of the subjects: it does not say then up to where it knew all.
        """
        inbox = self.connection.new_inbox()
        subscription = await self.connection.subscribe(inbox)
        try:
            question = json.dumps({"multi_last": subjects}).encode()
            await self.connection.publish(f"$JS.API.DIRECT.GET.{stream}", question, reply=inbox)
            found, last = [], 0
            while True:
                message = await subscription.next_msg(timeout)
                headers = message.headers or {}
                if "Nats-UpTo-Sequence" in headers:
                    is_whole = int(headers["Nats-Num-Pending"]) == 0 and int(headers["Nats-Last-Sequence"]) == last
                    return (found, int(headers["Nats-UpTo-Sequence"])) if is_whole else None
                if "Status" in headers or int(headers["Nats-Last-Sequence"]) != last:
                    return None
                last = int(headers["Nats-Sequence"])
                found.append((last, headers["Nats-Subject"], message.data.decode()))
        except (NATSTimeoutError, NoRespondersError, ConnectionClosedError, OutboundBufferLimitError):
            return None
        finally:
            await subscription.unsubscribe()

    async def log(self, stream):
        """All that the stream holds, in its order: (sequence, subject, value, the sequence that the writer expected)."""
        information = await self.information(stream)
        sequence, entries = max(1, information["state"]["first_seq"]), []
        while sequence <= information["state"]["last_seq"]:
            answer = await self.ask(f"$JS.API.STREAM.MSG.GET.{stream}", {"seq": sequence, "next_by_subj": ">"})
            if "error" in answer:
                assert answer["error"]["err_code"] == 10037, answer
                break
            entries.append(Entry.of(answer["message"]))
            sequence = entries[-1].sequence + 1
        return entries


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
            message["seq"], message["subject"], base64.b64decode(message.get("data", "")).decode(), int(demands[0]) if demands else None
        )


class EngineLoad:
    """Clients that write and read until they are told to stop."""

    #: Writes that one client has in flight.
    DEPTH = 32

    def __init__(self, trio, ledger, chance, slots=200, records=20):
        self.trio, self.ledger, self.chance = trio, ledger, chance
        self.slots = [f"box.{number}" for number in range(slots)]
        self.records = [f"record.{number}" for number in range(records)]
        self.record_ledger = EngineLedger()
        self.is_over = False
        self.clients = []
        self.tasks = []
        #: Reads whose answer counted, and those that came from a replica that was behind.
        self.reads = self.stale = 0
        #: Reads that counted and missed something acknowledged. There must be none.
        self.wrong = []
        self.progress = asyncio.Event()

    async def __aenter__(self):
        # Each client holds to one server while it lives, and goes to another when it dies.
        for server in self.trio.servers:
            urls = [server.url, *(url for url in self.trio.urls if url != server.url)]
            self.clients.append(await EngineClient.connect(*urls))
        await self.clients[0].make_stream(BOX)
        await self.clients[0].make_stream(RECORDS)
        for client in self.clients:
            self.tasks += [asyncio.create_task(self._write(client)) for _ in range(self.DEPTH)]
            self.tasks.append(asyncio.create_task(self._read(client)))
        self.tasks += [
            asyncio.create_task(self._change(self.clients[number % 3], subject)) for number, subject in enumerate(self.records)
            for _ in range(2)
        ]
        return self

    async def __aexit__(self, *_):
        self.is_over = True
        done, _ = await asyncio.wait(self.tasks, timeout=30)
        for client in self.clients:
            await client.close()
        for task in done:
            task.result()

    async def advance(self, count):
        """Waits until so many more writes were acknowledged."""
        goal = len(self.ledger.newest) and self._stored + count
        goal = goal or count
        async with asyncio.timeout(120):
            while self._stored < goal:
                self.progress.clear()
                await self.progress.wait()

    _stored = 0

    async def _write(self, client):
        while not self.is_over:
            write = self.ledger.begin(self.chance.choice(self.slots))
            await client.put(self.ledger, write, {"Nats-TTL": "86400s"})
            if write.sequence:
                self._stored += 1
                self.progress.set()
            else:
                await asyncio.sleep(0.05)

    async def _read(self, client):
        """Reads slots, with the greatest acknowledged sequence as the bound."""
        while not self.is_over:
            known = {subject: self.ledger.newest[subject] for subject in self.chance.choices(self.slots, k=5) if subject in self.ledger.newest}
            if not known:
                await asyncio.sleep(0.01)
                continue
            bound = max(known.values())
            answer = await client.newest("BOX", list(known))
            if answer is None:
                await asyncio.sleep(0.05)
                continue
            found, up_to = answer
            if up_to < bound:
                self.stale += 1
                continue
            self.reads += 1
            newest = {subject: sequence for sequence, subject, _ in found}
            self.wrong += [
                f"a read up to {up_to} has {newest.get(subject)} of {subject}, where {sequence} was acknowledged"
                for subject, sequence in known.items() if newest.get(subject, 0) < sequence
            ]

    async def _change(self, client, subject):
        """Changes a record again and again, on the condition that nobody has changed it meanwhile."""
        expected = 0
        while not self.is_over:
            write = self.record_ledger.begin(subject)
            await client.put(self.record_ledger, write, {"Nats-Expected-Last-Subject-Sequence": str(expected)})
            if write.sequence:
                expected = write.sequence
            else:
                # Somebody else changed it, or the outcome is unknown: its newest state decides.
                await asyncio.sleep(0.02)
                answer = await client.newest("RECORDS", [subject])
                expected = answer[0][0][0] if answer and answer[0] else expected


def broken_conditions(entries):
    """Conditional writes that the log has in a place where their condition does not hold."""
    newest, found = {}, []
    for entry in entries:
        before = newest.get(entry.subject, 0)
        if entry.expected is not None and entry.expected != before:
            found.append(f"{entry.value} at {entry.sequence} expected {entry.expected}, and {before} was there")
        newest[entry.subject] = entry.sequence
    return found


async def verdict(load, trio):
    """Everything that is wrong after a run, once the three servers are whole again."""
    client = await EngineClient.connect(*trio.urls)
    try:
        log = await client.log("BOX")
        records = await client.log("RECORDS")
    finally:
        await client.close()
    faults = load.wrong + load.ledger.faults([(entry.sequence, entry.subject, entry.value) for entry in log])
    faults += load.record_ledger.faults([(entry.sequence, entry.subject, entry.value) for entry in records])
    kept = {entry.value for entry in records}
    faults += [f"{write.value} of {write.subject} is lost" for write in load.record_ledger.acknowledged if write.value not in kept]
    return faults + broken_conditions(records)
