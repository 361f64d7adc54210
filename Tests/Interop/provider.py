"""A provider on the `h2` package, and devices on mosquitto_sub.

    with Provider(service, certificate=service.provider_certificate()) as provider:
        answer = provider.push(token, {"aps": {"alert": "hi"}}, priority=5)
        assert answer.status == 200

`push` sends one request and waits for its answer; `send` only sends, and `answer` waits. Everything runs on the calling
thread: bytes from the service are read while something is waited for, and never otherwise.
"""

import base64
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from service import PATIENCE, TOPIC, eventually, tcp_rows

GOAWAY_FRAME = 7
HELLO = {"aps": {"alert": "hello"}}
SHORT_NAMES = {
    "id": "apns-id",
    "topic": "apns-topic",
    "priority": "apns-priority",
    "expiration": "apns-expiration",
    "push_type": "apns-push-type",
    "collapse_id": "apns-collapse-id",
    "explain": "herald-explain",
}


class Disconnected(Exception):
    """The service closed the connection while the test waited for a frame."""


@dataclasses.dataclass
class Answer:
    """The answer on one stream."""

    stream: int
    status: int = 0
    headers: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    #: Each DATA frame: its length, and whether it ended the stream.
    frames: list = dataclasses.field(default_factory=list)
    #: Whether the header block ended the stream.
    headers_only: bool = False
    ended: bool = False
    #: The error code, if the service reset the stream.
    reset: int = None

    def header(self, name):
        """The value of a header field; None if it did not come, and an error if it came twice."""
        values = [value for field, value in self.headers if field == name]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def reason(self):
        return self.json["reason"] if self.body else None

    @property
    def timestamp(self):
        return self.json.get("timestamp") if self.body else None

    @property
    def id(self):
        return self.header("apns-id")

    @property
    def unique_id(self):
        return self.header("apns-unique-id")


@dataclasses.dataclass
class GoAway:
    """A GOAWAY frame."""

    last_stream_id: int
    error_code: int
    additional_data: bytes


# Provider tokens.


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def load_key(path):
    """The private key of a .p8 file."""
    return serialization.load_pem_private_key(pathlib.Path(path).read_bytes(), password=None)


def sign(key, text, der=False):
    """An ES256 signature: 64 bytes, R and S (RFC 7518 §3.4), or as DER, which many clients send."""
    signature = key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    if der:
        return signature
    r, s = decode_dss_signature(signature)
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def provider_token(key, age=0, header=None, claims=None, encode=base64url, der=False, indent=None):
    """A provider token made with `key`, (path, key identifier, team), as `Service.provider_key` returns it.

    `age` is in seconds; `header` and `claims` replace the usual ones; `encode` writes the three parts.
    """
    path, kid, team = key
    header = {"alg": "ES256", "kid": kid} if header is None else header
    claims = {"iss": team, "iat": int(time.time()) - age} if claims is None else claims
    separators = None if indent else (",", ":")
    texts = [json.dumps(part, indent=indent, separators=separators) for part in (header, claims)]
    signed = ".".join(encode(text.encode()) for text in texts)
    return f"{signed}.{encode(sign(load_key(path), signed, der))}"


# Connections.


def tls_context(ca, certificate=None, alpn=("h2",), version=None):
    """The TLS context of a client; `version` is an ssl.TLSVersion, `alpn` may be empty."""
    context = ssl.create_default_context(cafile=str(ca))
    if certificate:
        context.load_cert_chain(str(certificate))
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if version:
        context.minimum_version = context.maximum_version = version
    return context


def connect_tls(port, context, name="localhost", timeout=PATIENCE, source=None, first=b"", host="127.0.0.1"):
    """A TLS connection to a listener; `name` is the server name that the client sends.

    `source` is the client's address; `first` is sent before TLS.
    """
    plain = socket.create_connection((host, port), timeout=timeout, source_address=source and (source, 0))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        plain.sendall(first)
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


class Provider:
    """One provider's HTTP/2 connection.

    It authenticates by `certificate` (a PEM file, or a whole ssl.SSLContext), by `key` (path, key identifier, team: a token is made and sent with
    every request), or not at all. `name` is the host it asks for: `sandbox.localhost` asks for the sandbox.
    """

    def __init__(
        self, service, certificate=None, key=None, *, name="localhost", alpn=("h2",), version=None, settings=None,
        topic=TOPIC, timeout=PATIENCE, source=None, first=b"", port=None,
    ):
        self.timeout = timeout
        self.topic = topic
        self.authority = f"{name}:{service.listeners['api']}"
        self.authorization = f"bearer {provider_token(key)}" if key else None
        self.answers = {}
        self.goaways = []
        self._unread = b""
        #: Every SETTINGS frame that came, as a dictionary of h2.settings.SettingCodes.
        self.settings = []
        self.pongs = []
        self.closed = False
        context = certificate
        if not isinstance(context, ssl.SSLContext):
            context = tls_context(service.ca, certificate, alpn, version)
        self.socket = connect_tls(port or service.listeners["api"], context, name, timeout, source, first, service.host)
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=True,
                header_encoding=None,
                # Faulty requests are the point of many tests.
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        if settings:
            self.h2.local_settings.update(settings)
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed = True
        self.socket.close()

    # Requests.

    def push(self, token, payload=HELLO, **options):
        """Sends a notification and waits for the answer; options as for `send`."""
        return self.answer(self.send(token, payload, **options))

    def push_many(self, tokens, payload=HELLO, **options):
        """Sends one notification to each token, as many at once as the service allows, and waits for all answers."""
        streams = []
        for token in tokens:
            self.pump(lambda: self.h2.open_outbound_streams < self.concurrency, what="room for another stream")
            streams.append(self.send(token, payload, **options))
        return [self.answer(stream) for stream in streams]

    def send(self, token, payload=HELLO, *, method="POST", path=None, headers=(), authority=True, end=True, **named):
        """Sends a notification and returns its stream.

        `payload` is an object to be written as JSON, bytes to be sent as they are, or None for no DATA frame at all.
        `named` are header fields: `priority=5`, `expiration=0`, `id=…`, `topic=None` (left out) or any other with `_` for
        `-`. `headers` are further fields, as pairs, sent as they are. `authority=False` leaves `:authority` out.
        """
        body = json.dumps(payload, separators=(",", ":")).encode() if isinstance(payload, (dict, list)) else payload
        fields = [(":method", method), (":scheme", "https"), (":path", f"/3/device/{token}" if path is None else path)]
        if authority:
            fields.append((":authority", self.authority if authority is True else authority))
        named.setdefault("topic", self.topic)
        named.setdefault("authorization", self.authorization)
        fields += [
            (SHORT_NAMES.get(name, name.replace("_", "-")), value) for name, value in named.items() if value is not None
        ]
        fields += headers
        return self.request(fields, body, end=end)

    def request(self, fields, body=None, end=True):
        """Sends a request of exactly these header fields and returns its stream."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Answer(stream)
        pairs = [(_bytes(name), _bytes(value)) for name, value in fields]
        self.h2.send_headers(stream, pairs, end_stream=body is None and end)
        if body is not None:
            self.send_body(stream, body, end)
        self.flush()
        return stream

    def send_body(self, stream, body, end=True):
        """Sends DATA as the windows allow, reading meanwhile; stops when the service has ended the stream."""
        view = memoryview(body)
        answer = self.answers[stream]
        while True:
            if len(view):
                self.flush()
                self.pump(
                    lambda: answer.ended or self.h2.local_flow_control_window(stream) > 0, what="room for the body"
                )
            if answer.reset is not None:
                return
            size = min(len(view), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            last = size == len(view)
            self.h2.send_data(stream, bytes(view[:size]), end_stream=end and last)
            view = view[size:]
            if last:
                return self.flush()

    def answer(self, stream, timeout=None):
        """Waits for the answer on a stream."""
        answer = self.answers[stream]
        self.pump(lambda: answer.ended, timeout, f"the answer on stream {stream}")
        return answer

    def ping(self, data=b"herald-1"):
        """Sends a PING and waits for its acknowledgement."""
        count = len(self.pongs)
        self.h2.ping(data)
        self.flush()
        self.pump(lambda: len(self.pongs) > count, what="the acknowledgement of a PING")

    # Events of the service

    @property
    def concurrency(self):
        """The service's stream limit, as far as it is known."""
        return self.h2.remote_settings.max_concurrent_streams

    def wait_for_settings(self, count=1):
        self.pump(lambda: len(self.settings) >= count, what=f"SETTINGS number {count}")
        return self.settings[count - 1]

    def wait_for_goaway(self, timeout=None):
        self.pump(lambda: self.goaways, timeout, "a GOAWAY")
        return self.goaways[0]

    def wait_for_close(self, timeout=None):
        """Reads until the service closes the connection."""
        with contextlib.suppress(Disconnected, ssl.SSLError, ConnectionError):
            self.pump(lambda: False, timeout, "the end of the connection")

    # Bytes.

    def flush(self):
        data = self.h2.data_to_send()
        if not data:
            return
        try:
            self.socket.sendall(data)
        except (ssl.SSLError, ConnectionError) as error:
            # The last frames of the service may still be unread.
            self._read_rest()
            raise Disconnected(f"while sending: {error}") from error

    def pump(self, condition, timeout=None, what="the condition"):
        """Reads and answers frames until a condition holds."""
        end = time.monotonic() + (timeout or self.timeout)
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{what} did not come within {timeout or self.timeout} s")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                continue
            finally:
                self.socket.settimeout(self.timeout)
            if not data:
                raise Disconnected(f"the service closed the connection; {what} did not come; GOAWAY: {self.goaways}")
            self._take(data)
            self.flush()

    def _read_rest(self):
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            while data := self.socket.recv(65536):
                self._take(data)

    def _take(self, data):
        self._unread += data
        while len(self._unread) >= 9 and len(self._unread) >= (end := 9 + int.from_bytes(self._unread[:3], "big")):
            frame, self._unread = self._unread[:end], self._unread[end:]
            if frame[3] == GOAWAY_FRAME:
                # h2 takes no frame after it, although answers may follow (RFC 9113, section 6.8).
                last, code = struct.unpack(">II", frame[9:17])
                self.goaways.append(GoAway(last & 0x7FFFFFFF, code, frame[17:]))
            else:
                self._take_frame(frame)

    def _take_frame(self, frame):
        for event in self.h2.receive_data(frame):
            match event:
                case h2.events.ResponseReceived():
                    answer = self.answers[event.stream_id]
                    answer.headers = [(name.decode(), value.decode()) for name, value in event.headers]
                    answer.status = int(answer.header(":status"))
                    answer.headers_only = event.stream_ended is not None
                case h2.events.DataReceived():
                    answer = self.answers[event.stream_id]
                    answer.body += event.data
                    answer.frames.append((len(event.data), event.stream_ended is not None))
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case h2.events.StreamEnded():
                    self.answers[event.stream_id].ended = True
                case h2.events.StreamReset():
                    answer = self.answers[event.stream_id]
                    answer.reset, answer.ended = int(event.error_code), True
                case h2.events.RemoteSettingsChanged():
                    self.settings.append({code: change.new_value for code, change in event.changed_settings.items()})
                case h2.events.PingAckReceived():
                    self.pongs.append(event.ping_data)


def _bytes(text):
    return text if isinstance(text, bytes) else str(text).encode()


# Devices.


@dataclasses.dataclass
class Message:
    """One PUBLISH as mosquitto_sub saw it; properties only with MQTT 5."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    expiry: int
    content_type: str
    properties: str

    @property
    def json(self):
        return json.loads(self.payload)

    @property
    def id(self):
        """The `apns-id`, in lower case."""
        return (self.property("apns-id") or "").lower()

    def property(self, name):
        """A user property whose value has no space in it."""
        for pair in self.properties.split(" "):
            key, _, value = pair.partition(":")
            if key == name:
                return value
        return None


class Device:
    """A device whose app is mosquitto_sub; `start` and `stop` as often as a test likes."""

    #: Topic, QoS, RETAIN, message expiry, content type, payload in hex, user properties; the last may hold anything.
    FORMAT = "%t\t%q\t%r\t%E\t%C\t%x\t%P"

    def __init__(self, service, *topics, name="device", version="mqttv5", prefix=(), enrolled=None):
        self.service = service
        self.topics = topics or (TOPIC,)
        self.version = version
        self.prefix = list(prefix)
        self.path, self.id = enrolled or service.device(name)
        #: The token of each topic.
        self.tokens = {}
        #: Every notification that came, over all connections.
        self.messages = []
        self.process = None
        self._inbox = queue.Queue()

    @property
    def token(self):
        return self.tokens[self.topics[0]]

    def start(self, *options, qos=1, timeout=PATIENCE):
        """Connects, subscribes, and waits for the tokens."""
        filters = [part for topic in self.topics for part in ("-t", f"apps/{topic}/#")]
        command = [
            *self.prefix, "mosquitto_sub", "-h", self.service.host, "-p", str(self.service.listeners["device"]),
            "--cafile", str(self.service.ca), "--cert", str(self.path), "--key", str(self.path),
            "-i", self.id, "-V", self.version, "-q", str(qos), "-F", self.FORMAT, *filters, *options,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        waiting = set(self.topics)
        tokens = queue.Queue()

        def read(stream):
            for line in stream:
                message = self._parse(line.rstrip("\n"))
                topic = message.topic.removeprefix("apps/")
                if topic.endswith("/token"):
                    topic = topic.removesuffix("/token")
                    self.tokens[topic] = message.payload.decode()
                    tokens.put(topic)
                else:
                    self.messages.append(message)
                    self._inbox.put(message)
            tokens.put(None)

        self._reader = threading.Thread(target=read, args=(self.process.stdout,), daemon=True)
        self._reader.start()
        while waiting:
            try:
                topic = tokens.get(timeout=timeout)
            except queue.Empty:
                topic = None
            if topic is None:
                self.process.kill()
                raise AssertionError(f"no token of {waiting} came: {self.process.communicate()[1]}")
            waiting.discard(topic)
        return self

    @staticmethod
    def _parse(line):
        topic, qos, retain, expiry, content_type, payload, properties = line.split("\t", 6)
        return Message(
            topic, bytes.fromhex(payload), int(qos), retain == "1", int(expiry or 0), content_type, properties
        )

    def next(self, timeout=PATIENCE):
        """The next notification."""
        try:
            return self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no notification came within {timeout} s") from None

    def stop(self):
        """Disconnects as a client does that will be back, and waits until the service has seen it."""
        if self.process is None:
            return self
        port = _local_port(self.process.pid, self.service.listeners["device"])
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            # It was waiting to reconnect to a service that is gone.
            self.process.kill()
            self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None
        if port:
            eventually(lambda: not self.service.has_device_at(port), what="the end of the connection")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def listening_device(service, *topics, **options):
    """A new device that is connected and registered for the topics (one app, unless told otherwise)."""
    return Device(service, *topics, **options).start()


def away_device(service, *topics, **options):
    """A new device that registered for the topics and went away."""
    return listening_device(service, *topics, **options).stop()


def _socket_inodes(pid):
    """The inodes of a process's sockets."""
    inodes = set()
    with contextlib.suppress(OSError):
        for entry in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                link = os.readlink(f"/proc/{pid}/fd/{entry}")
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
    return inodes


def _local_port(pid, remote_port):
    """The local port of a process's connection to a port."""
    inodes = _socket_inodes(pid)
    rows = tcp_rows(pid) if inodes else ()
    return next((local for local, remote, _, inode, _ in rows if remote == remote_port and inode in inodes), None)


def listening_sockets(pid):
    """The addresses and ports on which a process itself listens, whatever other processes do."""
    inodes = _socket_inodes(pid)
    return {(address, local) for local, _, state, inode, address in tcp_rows(pid) if state == "0A" and inode in inodes}

