"""Clients that write to a replicated stream and read it while its servers fail."""

import asyncio
import collections
import time

from engine_client import BOX, RECORDS, EngineClient
from engine_ledger import EngineLedger, broken_conditions
from service import PATIENCE, eventually_async


class EngineLoad:
    """Clients that write and read until they are told to stop."""

    def __init__(self, trio, chance, slots=200, records=10, ballast=0, depth=32):
        #: Each of three clients has so many writes in flight.
        self.depth = depth
        self.trio, self.chance, self.ballast = trio, chance, ballast
        self.ledger = EngineLedger()
        self.slots = [f"box.{number}" for number in range(slots)]
        self.records = [f"record.{number}" for number in range(records)]
        self.record_ledger = EngineLedger()
        #: Writes that were acknowledged, when the last one was, and the longest time between two of them: a test sets it back.
        self.stored = 0
        self.last = time.monotonic()
        self.longest_gap = 0
        self.is_over = False
        self.clients = []
        self.tasks = []
        #: Reads whose answer counted, and those that came from a replica that was behind.
        self.reads = self.stale = 0
        #: Reads that counted and had something older than what was acknowledged. There must be none.
        self.wrong = []
        #: Subjects that a read up to a sequence did not have. Something later must have replaced what was there.
        self.holes = []
        self.progress = asyncio.Event()

    async def __aenter__(self):
        # Each client holds to one server while it lives, and goes to another when it dies.
        for server in self.trio.servers:
            urls = [server.url, *(url for url in self.trio.urls if url != server.url)]
            self.clients.append(await EngineClient.connect(*urls))
        await self.clients[0].make_stream(BOX)
        await self.clients[0].make_stream(RECORDS)
        for client in self.clients:
            self.tasks += [asyncio.create_task(self._write(client)) for _ in range(self.depth)]
            self.tasks.append(asyncio.create_task(self._read(client)))
        self.tasks += [
            asyncio.create_task(self._change(self.clients[number % 3], subject)) for number, subject in enumerate(self.records)
            for _ in range(2)
        ]
        return self

    async def __aexit__(self, *_):
        self.is_over = True
        done, _ = await asyncio.wait(self.tasks, timeout=PATIENCE)
        for client in self.clients:
            await client.close()
        for task in done:
            task.result()

    @property
    def acknowledged(self):
        return len(self.ledger.acknowledged) + len(self.record_ledger.acknowledged)

    @property
    def unknown(self):
        return len(self.ledger.unknown) + len(self.record_ledger.unknown)

    def refusals(self):
        """How many writes were refused, by the reason."""
        writes = [*self.ledger.writes, *self.record_ledger.writes]
        return collections.Counter(f"refused_{write.refused}".replace(" ", "_") for write in writes if write.refused)

    async def read_again(self):
        """Waits until a bounded read counted."""
        before = self.reads
        await eventually_async(lambda: self.reads > before, 120, "a read that counts")

    async def advance(self, count):
        """Waits until so many more writes were acknowledged."""
        goal = self.stored + count
        async with asyncio.timeout(120):
            while self.stored < goal:
                self.progress.clear()
                await self.progress.wait()

    async def _write(self, client):
        while not self.is_over:
            write = self.ledger.begin(self.chance.choice(self.slots))
            await client.put(self.ledger, write, {"Nats-TTL": "86400s"}, self.ballast)
            if write.sequence:
                self._progress()
            else:
                await asyncio.sleep(0.05)  # pace: of a client that was refused

    def _progress(self):
        now = time.monotonic()
        self.longest_gap = max(self.longest_gap, now - self.last)
        self.last = now
        self.stored += 1
        self.progress.set()

    async def _read(self, client):
        """Reads slots, with the greatest acknowledged sequence as the bound."""
        while not self.is_over:
            known = {subject: self.ledger.newest[subject] for subject in self.chance.choices(self.slots, k=5) if subject in self.ledger.newest}
            if not known:
                await asyncio.sleep(0.01)  # pace: of reads
                continue
            bound = max(known.values())
            answer = await client.newest("BOX", list(known))
            if answer is None:
                await asyncio.sleep(0.05)  # pace: of reads
                continue
            found, up_to = answer
            if up_to < bound:
                self.stale += 1
                continue
            self.reads += 1
            newest = {subject: sequence for sequence, subject, _ in found}
            self.holes += [(subject, up_to) for subject in known if subject not in newest]
            self.wrong += [
                f"a read up to {up_to} has {newest[subject]} of {subject}, where {sequence} was acknowledged"
                for subject, sequence in known.items() if newest.get(subject, sequence) < sequence
            ]

    async def _change(self, client, subject):
        """Changes a record again and again, on the condition that nobody has changed it meanwhile."""
        expected = 0
        while not self.is_over:
            write = self.record_ledger.begin(subject)
            await client.put(self.record_ledger, write, {"Nats-Expected-Last-Subject-Sequence": str(expected)})
            if write.sequence:
                expected = write.sequence
                await asyncio.sleep(0.02)  # pace: of changes
            else:
                # Somebody else changed it, or the outcome is unknown: its newest state decides.
                await asyncio.sleep(0.02)  # pace: of changes
                answer = await client.newest("RECORDS", [subject])
                expected = answer[0][0][0] if answer and answer[0] else expected

    def faults(self, log, records):
        """Everything that is wrong in a copy of both streams."""
        found = self.ledger.faults(log) + self.record_ledger.faults(records) + broken_conditions(records)
        newest = {entry.subject: entry.sequence for entry in log}
        found += [
            f"a read up to {up_to} has nothing of {subject}, which nothing replaced later"
            for subject, up_to in self.holes if newest.get(subject, 0) <= up_to
        ]
        kept = {entry.value for entry in records}
        lost = [write for write in self.record_ledger.acknowledged if write.value not in kept]
        return found + [f"{write.value} of {write.subject}, acknowledged as {write.sequence}, is lost" for write in lost]


async def verdict(load, servers):
    """All that is wrong after a run in the copy of each server, once they are whole again."""
    client = await EngineClient.connect(*(server.url for server in servers))
    try:
        faults = list(load.wrong)
        for server in servers:
            for stream in ("BOX", "RECORDS"):
                await client.lead(stream, server)
            faults += [f"{server}: {fault}" for fault in load.faults(await client.log("BOX"), await client.log("RECORDS"))]
        return faults
    finally:
        await client.close()
