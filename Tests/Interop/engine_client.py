"""A client of a replicated stream that tells the outcomes of its writes apart."""

import asyncio
import contextlib
import itertools
import json

import nats
from nats.errors import ConnectionClosedError, NoRespondersError, OutboundBufferLimitError
from nats.errors import TimeoutError as NATSTimeoutError

from engine_ledger import Entry, value_of
from service import eventually_async

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


class EngineClient:
    """One connection with the outcomes of its writes told apart."""

    def __init__(self, connection):
        self.connection = connection

    @classmethod
    async def connect(cls, *urls, ping=2):
        async def quiet(_):
            pass

        return cls(await nats.connect(
            servers=list(urls), max_reconnect_attempts=-1, reconnect_time_wait=0.1, connect_timeout=2, ping_interval=ping,
            max_outstanding_pings=2, error_cb=quiet, pending_size=-1, dont_randomize=len(urls) == 1,
        ))

    async def close(self):
        # A server that is gone takes no more bytes.
        with contextlib.suppress(OSError):
            await self.connection.close()

    async def ask(self, subject, question=None, timeout=3):
        """A question of the API; again while nobody answers, as during an election."""

        async def answered():
            with contextlib.suppress(NATSTimeoutError, NoRespondersError, ConnectionClosedError, OutboundBufferLimitError):
                answer = await self.connection.request(subject, json.dumps(question or {}).encode(), timeout=timeout)
                body = json.loads(answer.data)
                # 10008 and 10009: no leader yet.
                return body if body.get("error", {}).get("code") != 503 else None

        return await eventually_async(answered, 60, f"an answer to {subject}")

    async def make_stream(self, stream):
        async def answered():
            answer = await self.ask(f"$JS.API.STREAM.CREATE.{stream['name']}", stream)
            # 10005: no suitable peers, as long as a new cluster does not know all three.
            return answer if answer.get("error", {}).get("err_code") != 10005 else None

        answer = await eventually_async(answered, 60, "a cluster that knows all three")
        assert "error" not in answer, answer

    async def information(self, stream, **question):
        return await self.ask(f"$JS.API.STREAM.INFO.{stream}", question)

    async def lead(self, stream, server):
        """Makes a server the leader of a stream: it is the one that answers `log`."""
        attempts = itertools.count()

        async def leads():
            if (await self.information(stream))["cluster"].get("leader") == server.name:
                return True
            # It may be behind, and then another one leads. Asked too often, it never does.
            if next(attempts) % 125 == 0:
                await self.ask(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": server.name}})

        await eventually_async(leads, 240, f"{server.name} as leader")

    async def put(self, ledger, write, headers=None, ballast=0):
        """Publishes, with so many bytes more, and notes the outcome."""
        body = f"{write.value} {'x' * ballast}".encode()
        try:
            answer = await self.connection.request(write.subject, body, timeout=ANSWER, headers=headers)
        except NoRespondersError:
            write.refused = 503
            return
        except OutboundBufferLimitError:
            write.refused = "not sent"
            return
        except (NATSTimeoutError, ConnectionClosedError, OSError):
            return
        body = json.loads(answer.data)
        if "error" in body:
            write.refused = body["error"].get("err_code", 0)
        else:
            ledger.stored(write, body["seq"])

    async def store(self, ledger, subject):
        """Publishes until one write is acknowledged, and returns that."""
        async def stored():
            write = ledger.begin(subject)
            await self.put(ledger, write)
            return write if write.sequence else None

        return await eventually_async(stored, 120, "an acknowledged write")

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
                found.append((last, headers["Nats-Subject"], value_of(message.data)))
        except (NATSTimeoutError, NoRespondersError, ConnectionClosedError, OutboundBufferLimitError):
            return None
        finally:
            await subscription.unsubscribe()

    async def log(self, stream):
        """All entries that the leader's copy of the stream holds, in their order."""
        information = await self.information(stream, subjects_filter=">")
        if information["config"]["max_msgs_per_subject"] == 1:
            questions = [{"last_by_subj": subject} for subject in information["state"].get("subjects", {})]
        else:
            questions = [{"seq": sequence} for sequence in range(1, information["state"]["last_seq"] + 1)]
        entries = []
        for start in range(0, len(questions), 64):
            asked = [self.ask(f"$JS.API.STREAM.MSG.GET.{stream}", question) for question in questions[start : start + 64]]
            answers = await asyncio.gather(*asked)
            entries += [Entry.of(answer["message"]) for answer in answers if "error" not in answer]
            # 10037: no such message.
            assert all(answer.get("error", {}).get("err_code", 10037) == 10037 for answer in answers)
        return sorted(entries, key=lambda entry: entry.sequence)
