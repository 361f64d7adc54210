"""A sender on h2 that passes every scenario of `herald exam`, and mutants of it with one fault each: `exam_sender.py [MUTANT]`.

It keeps one connection, one provider token, and one `apns-id` for all attempts of a notification. It repeats what was not
accepted and still may be, a few times with growing pauses, and never what the service refuses for good.
"""

import asyncio
import contextlib
import json
import math
import pathlib
import random
import ssl
import sys
import time
import uuid

import jwt
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

MUTANTS = {
    "new-connection": "opens a connection for each attempt",
    "ignore-goaway": "repeats all that is in flight at a GOAWAY, also what will still be answered",
    "new-id": "gives each attempt another apns-id",
    "new-token": "makes a provider token for each attempt",
    "repeat-forever": "repeats at once, without an end",
    "no-verify": "does not verify the certificate",
    "claim-success": "says of each notification that it was accepted",
    "hang": "waits for an answer without a limit",
    "close-at-429": "sends one after the other, and closes the client of all at a 429",
    "dead-at-403": "calls a token dead after a 403",
}
MUTANT = sys.argv[1] if len(sys.argv) > 1 else None
if MUTANT not in {None, *MUTANTS}:
    sys.exit(f"exam_sender.py: there is no mutant {MUTANT}: write one of {', '.join(MUTANTS)}, or none")

#: Seconds: the limit for an answer and for a connect; the pauses before further attempts; the longest `retry-after` to wait for;
#: the time in which a provider token is not renewed twice, and the age at which it is.
LIMIT, PAUSES, LONGEST_WAIT, YOUNG, OLD = 15, (0.2, 0.4, 0.8, 1.6), 10, 20 * 60, 50 * 60
#: How often a notification is repeated because the service did not process it, and because no answer came.
MOVES, REPETITIONS = 10, 2


class Unprocessed(Exception):
    """The service has not processed the request: to send it again cannot double it."""


class Doubt(Exception):
    """No answer came: the service may have accepted the notification."""


class Connection:
    """An HTTP/2 connection to the service."""

    def __init__(self, writer):
        self.writer, self.h2 = writer, H2Connection(H2Configuration(header_encoding="utf-8"))
        #: A future for each stream without an answer, and the parts of answers.
        self.waiting, self.answers = {}, {}
        #: Whether the service has told its limits; whether it has sent GOAWAY, or closed the connection.
        self.is_ready, self.is_ending, self.frames, self.change = False, False, 0, asyncio.Event()
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        if data := self.h2.data_to_send():
            self.writer.write(data)
        self.change.set()
        self.change = asyncio.Event()

    def has_room(self, size):
        limit = self.h2.remote_settings.max_concurrent_streams
        return self.is_ready and self.h2.open_outbound_streams < limit and self.h2.outbound_flow_control_window >= size

    async def request(self, headers, body):
        """Sends a request as soon as the stream limit allows it: status, header fields and body of the answer."""
        while not self.is_ending and not self.has_room(len(body)):
            await self.change.wait()
        if self.is_ending:
            raise Unprocessed("the connection ends")
        stream = self.h2.get_next_available_stream_id()
        answer = self.waiting[stream] = asyncio.get_running_loop().create_future()
        self.h2.send_headers(stream, headers)
        self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        try:
            return await asyncio.wait_for(answer, None if MUTANT == "hang" else LIMIT)
        except TimeoutError:
            frames = self.frames
            with contextlib.suppress(ProtocolError):
                self.h2.reset_stream(stream, ErrorCodes.CANCEL)
                self.h2.ping(b"are you?")
                self.flush()
            await asyncio.sleep(1)  # pace: the limit for the answer to a PING
            if self.frames == frames:
                self.writer.close()
            raise Doubt("no answer in time") from None
        finally:
            del self.waiting[stream]

    async def read(self, reader):
        """Takes frames until the connection ends."""
        unread = b""
        with contextlib.suppress(OSError, ProtocolError):
            while data := await reader.read(65_536):
                unread += data
                while len(unread) >= 9 and len(unread) >= (end := 9 + int.from_bytes(unread[:3], "big")):
                    frame, unread = unread[:end], unread[end:]
                    self.take(frame)
                self.flush()
        self.is_ending = True
        self.fail([*self.waiting], Doubt("the connection ended"))
        self.flush()
        self.writer.close()

    def take(self, frame):
        self.frames += 1
        if frame[3] == 7:
            # h2 takes no frame after a GOAWAY, but answers up to its last stream follow (RFC 9113, section 6.8).
            self.is_ending, last = True, int.from_bytes(frame[9:13], "big") & 0x7FFF_FFFF
            last = 0 if MUTANT == "ignore-goaway" else last
            self.fail([stream for stream in self.waiting if stream > last], Unprocessed("beyond the last stream"))
        for event in self.h2.receive_data(frame) if frame[3] != 7 else ():
            match event:
                case events.RemoteSettingsChanged():
                    self.is_ready = True
                case events.ResponseReceived():
                    self.answers[event.stream_id] = dict(event.headers), bytearray()
                case events.DataReceived():
                    self.answers[event.stream_id][1].extend(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case events.StreamEnded():
                    headers, body = self.answers.pop(event.stream_id)
                    if (answer := self.waiting.get(event.stream_id)) and not answer.done():
                        answer.set_result((int(headers[":status"]), headers, bytes(body)))
                case events.StreamReset():
                    is_refused = event.error_code == ErrorCodes.REFUSED_STREAM
                    self.fail([event.stream_id], Unprocessed("refused stream") if is_refused else Doubt("reset stream"))

    def fail(self, streams, error):
        for stream in streams:
            if (answer := self.waiting.get(stream)) and not answer.done():
                answer.set_exception(error)


class Sender:
    """The client of all notifications: one connection at a time, and one provider token."""

    def __init__(self, place):
        self.place, self.key = place, pathlib.Path(place["key"]).read_text()
        self.tls = ssl.create_default_context(cafile=place["ca"])
        self.tls.set_alpn_protocols(["h2"])
        if MUTANT == "no-verify":
            self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.connection, self.connecting, self.closed_until, self.renewed = None, asyncio.Lock(), 0, 0
        self.renew()

    def renew(self):
        self.made = int(time.time())
        claims, headers = {"iss": self.place["team"], "iat": self.made}, {"kid": self.place["key_id"]}
        self.token = jwt.encode(claims, self.key, algorithm="ES256", headers=headers)

    async def connected(self):
        """The connection, or a new one in its place; an OSError if there is none, which others then get for a while."""
        async with self.connecting:
            if self.connection and not self.connection.is_ending and self.closed_until < math.inf and MUTANT != "new-connection":
                return self.connection
            for pause in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, None):
                if time.monotonic() < self.closed_until:
                    raise ConnectionError
                try:
                    opening = asyncio.open_connection(self.place["host"], self.place["port"], ssl=self.tls)
                    reader, writer = await asyncio.wait_for(opening, LIMIT)
                except OSError as error:
                    if pause is None or isinstance(error, ssl.SSLCertVerificationError):
                        self.closed_until = time.monotonic() + 5
                        raise
                    await asyncio.sleep(pause)  # pace: between two attempts to connect
                else:
                    self.connection = Connection(writer)
                    self.connection.reading = asyncio.create_task(self.connection.read(reader))
                    return self.connection

    async def attempt(self, order, id, token):
        connection = await self.connected()
        headers = {":method": "POST", ":scheme": "https", ":authority": self.place["host"], ":path": f"/3/device/{order['token']}"}
        headers |= {"authorization": f"bearer {token}", "apns-topic": self.place["topic"], "apns-id": str(id)}
        for name in {"push_type", "priority", "expiration", "collapse_id"} & order.keys():
            headers[f"apns-{name.replace('_', '-')}"] = str(order[name])
        try:
            body = json.dumps(order["payload"], ensure_ascii=False, separators=(",", ":")).encode()
            status, headers, body = await connection.request([*headers.items()], body)
        finally:
            if MUTANT == "new-connection":
                connection.writer.close()
        if status == 429 and MUTANT == "close-at-429":
            self.closed_until = math.inf
        reason = json.loads(body).get("reason") if body else None
        return status, reason, int(headers.get("retry-after", 0))

    async def send(self, order):
        """Sends a notification until its outcome is known: the words for it."""
        id, moves, doubts, pauses = uuid.uuid4(), 0, 0, [*PAUSES]
        while True:
            if MUTANT == "new-token" or time.time() - self.made > OLD:
                self.renew()
            token, wait = self.token, 0
            try:
                status, reason, wait = await self.attempt(order, uuid.uuid4() if MUTANT == "new-id" else id, token)
            except OSError as error:
                return {"outcome": "unknown" if doubts else "failed", "reason": type(error).__name__}
            except Unprocessed as error:
                told, may_repeat, moves = {"outcome": "failed", "reason": str(error)}, False, moves + 1
                if moves <= MOVES:
                    continue
            except Doubt as error:
                told, may_repeat, doubts = {"outcome": "unknown", "reason": str(error)}, doubts < REPETITIONS, doubts + 1
            else:
                if status == 200 or MUTANT == "claim-success":
                    return {"outcome": "accepted", "status": 200}
                told, may_repeat = {"outcome": "refused", "status": status, "reason": reason}, status in (429, 500, 503)
                if status == 403 and MUTANT == "dead-at-403":
                    told |= {"status": 410, "reason": "Unregistered"}
                if reason == "ExpiredProviderToken" and token == self.token and time.time() - self.renewed > YOUNG:
                    self.renewed = time.time()
                    self.renew()
                if reason == "ExpiredProviderToken" and token != self.token:
                    continue
            if MUTANT == "repeat-forever" and may_repeat:
                continue
            wait = max(wait, pauses.pop(0) * random.uniform(1, 1.5)) if pauses else LONGEST_WAIT + 1
            if not may_repeat or wait > LONGEST_WAIT or 0 < order.get("expiration", 0) < time.time() + wait:
                return told | ({"outcome": "unknown"} if doubts else {})
            await asyncio.sleep(wait)  # pace: between two attempts


async def send(sender, turn, order):
    async with turn if MUTANT == "close-at-429" else contextlib.nullcontext():
        print(json.dumps({"id": order["id"]} | await sender.send(order)), flush=True)


async def main():
    async with asyncio.TaskGroup() as sends:
        while line := await asyncio.to_thread(sys.stdin.readline):
            match json.loads(line):
                case {"do": "open", **place}:
                    sender, turn = Sender(place), asyncio.Lock()
                case {"do": "send", **order}:
                    sends.create_task(send(sender, turn, order))
                case {"do": "close"}:
                    break


asyncio.run(main())
