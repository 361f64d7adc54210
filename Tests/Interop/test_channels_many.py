"""A thousand subscribers: each gets each broadcast once and in order, and a silent one delays nobody."""

import resource
import selectors
import socket
import ssl
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

import mqtt_packets as mqtt
from certificates import Authority, uri
from channels import compact, create, filter_of, publish
from mqtt_packets import Property
from provider import Provider, tls_context
from service import PATIENCE, Service, eventually

DEVICES = 1000
BROADCASTS = 20


class Listener:
    """A device's connection, light enough for a thousand of them: it counts what comes to its channel."""

    def __init__(self, port, context, identity, filter, receive_buffer=None):
        plain = socket.socket()
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(PATIENCE)
        plain.connect(("127.0.0.1", port))
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.unread = b""
        self.payloads = []
        #: Whether the service gave up the connection, which it does after half a minute with nothing read.
        self.has_ended = False
        # Some say nothing until a thousand have come.
        self.socket.sendall(mqtt.connect(identity, 4, keep_alive=900))
        assert self._exactly(4) == b"\x20\x02\x00\x00"
        self.socket.sendall(mqtt.subscribe(1, (filter, 1), version=4))
        assert self._exactly(5) == b"\x90\x03\x00\x01\x01"
        self.topic_bytes = len(filter)
        self.socket.setblocking(False)

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            data += self.socket.recv(count - len(data))
        return data

    def take(self):
        """Takes what has come, and acknowledges it."""
        while True:
            try:
                data = self.socket.recv(65536)
            except ssl.SSLWantReadError:
                break
            except OSError:
                data = b""
            if not data:
                self.has_ended = True
                break
            self.unread += data
        answers = b""
        while len(self.unread) >= 2:
            length, position, shift = 0, 1, 0
            while True:
                byte = self.unread[position]
                length |= (byte & 0x7F) << shift
                position, shift = position + 1, shift + 7
                if byte < 0x80:
                    break
            if len(self.unread) < position + length:
                break
            assert self.unread[0] == 0x32, f"a packet of the kind {self.unread[0]:#x}"
            start = position + 2 + self.topic_bytes
            answers += b"\x40\x02" + self.unread[start : start + 2]
            self.payloads.append(bytes(self.unread[start + 2 : position + length]))
            self.unread = self.unread[position + length :]
        if answers and not self.has_ended:
            self.socket.setblocking(True)
            self.socket.sendall(answers)
            self.socket.setblocking(False)


def memory(pid):
    """The resident memory of a process, in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
    service = Service(tmp_path_factory.mktemp("many") / "data").start()
    yield service
    service.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture(scope="module")
def sender(service):
    with Provider(service, key=service.provider_key(), timeout=PATIENCE) as sender:
        yield sender


class Crowd:
    """Listeners to one channel."""

    def __init__(self, service, channel):
        self.port = service.listeners["device"]
        self.ca = service.ca
        self.filter = filter_of(channel)
        self.folder = service.data.parent
        self.authority = Authority.of_service(service, "device")
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.all = []

    def join(self, count, **options):
        for number in range(len(self.all), len(self.all) + count):
            name = f"{self.filter[-8:-2]}-{number}"
            path = self.authority.issue(
                self.folder / "listener.pem", subject=name, names=[uri(f"urn:herald:device:{name}")], key=self.key
            )
            self.all.append(Listener(self.port, tls_context(self.ca, path, ()), name, self.filter, **options))
        return self.all[-count:]

    def wait(self, listeners, count, timeout=2 * PATIENCE):
        """Reads on all of them until each has had so many."""
        waiting = set(listeners)
        end = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for listener in listeners:
                selector.register(listener.socket, selectors.EVENT_READ, listener)
            while waiting:
                assert time.monotonic() < end, f"{len(waiting)} of {len(listeners)} have not had {count}"
                for key, _ in selector.select(1):
                    key.data.take()
                    assert not key.data.has_ended, "the service closed a listener's connection"
                    if len(key.data.payloads) >= count:
                        waiting.discard(key.data)

    def close(self):
        for listener in self.all:
            listener.socket.close()


@pytest.fixture
def crowd(service, sender):
    channel = create(sender, 0)
    crowd = Crowd(service, channel)
    crowd.channel = channel
    yield crowd
    crowd.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_device_gets_every_broadcast_once_in_order(service, sender, crowd):
    listeners = crowd.join(DEVICES)
    expected = [compact({"aps": {"n": number}}) for number in range(BROADCASTS)]
    uniques = [publish(sender, crowd.channel, payload) for payload in expected]
    crowd.wait(listeners, BROADCASTS)
    publish(sender, crowd.channel, b'{"last":1}')
    crowd.wait(listeners, BROADCASTS + 1)
    for listener in listeners:
        assert listener.payloads == [*expected, b'{"last":1}']

    def told():
        return [line["devices"] for line in service.journal(uniques[-1]) if "devices" in line]

    assert eventually(told, what="the line that says how many devices it went to") == [DEVICES]


@pytest.mark.slow
def test_devices_that_read_nothing_delay_nobody_and_cost_little_memory(service, sender, crowd):
    fast = crowd.join(40)
    slow = crowd.join(20, receive_buffer=4096)
    padding = "x" * 5000
    sent = []

    def round_of(count):
        for _ in range(count):
            sent.append(compact({"n": len(sent), "x": padding}))
            publish(sender, crowd.channel, sent[-1])
        crowd.wait(fast, len(sent))

    # Within the window of devices that acknowledge, and enough to fill every buffer of the others.
    for _ in range(10):
        round_of(10)
    before = memory(service.pid)
    for _ in range(30):
        round_of(10)
    growth = memory(service.pid) - before
    assert all(listener.payloads == sent for listener in fast)
    # Kept for each of the twenty, what was sent since would be 30 MiB.
    assert growth < 10 * 1024, f"{growth} KiB"
    deadline = time.monotonic() + 2 * PATIENCE
    # A busy machine may take the half minute after which one that reads nothing is given up: then it gets nothing more.
    while any(listener.payloads[-1:] != sent[-1:] and not listener.has_ended for listener in slow):
        assert time.monotonic() < deadline, "a slow listener never had the newest"
        for listener in slow:
            listener.take()
    for listener in slow:
        places = [sent.index(payload) for payload in listener.payloads]
        assert places == sorted(set(places)) and len(places) < len(sent) / 2


def unsent(port, peer):
    """The bytes that the system holds for a connection on this machine."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    ports = f":{port:04X}", f":{peer:04X}"
    (queues,) = [row[4] for row in rows if row[1].endswith(ports[0]) and row[2].endswith(ports[1])]
    return int(queues.split(":")[0], 16)


def test_the_system_holds_little_for_one_that_takes_nothing(service, sender, enroll):
    """Messages in flight would fill its buffer of up to 4 MiB for each device."""
    channel = create(sender, 0)
    properties = ((Property.RECEIVE_MAXIMUM, 65535),)
    slow, fast = enroll(service).connect(properties=properties), enroll(service).connect()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for link in (slow, fast):
        assert link.subscribe(filter_of(channel)).reasons == (1,)
    peer = slow.socket.getsockname()[1]
    for number in range(120):
        publish(sender, channel, compact({"n": number, "x": "x" * 5000}))
        fast.next()
    assert eventually(lambda: unsent(service.listeners["device"], peer) > 30_000)
    # 600,000 were sent.
    assert unsent(service.listeners["device"], peer) < 200_000
