"""The device listener accepts and refuses certificates, also in resumed sessions and on open connections."""

import concurrent.futures
import contextlib
import datetime
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

import mqtt_packets as mqtt
import mqtt_wire
from certificates import DAY, Authority, uri
from mqtt_device import LONG
from mqtt_packets import Kind, Reason
from provider import Disconnected, Provider
from refusals import refused
from service import PATIENCE, eventually, herald, once_within

HELLO = b'{"aps":{"alert":"hello"}}'
#: A device identifier that nobody enrolled; certificates of the device authority are enough to be a device.
NOBODY = "bespoke-0123456789"


def is_accepted(service, pem, identifier, context=None):
    """Whether a CONNECT with this certificate is accepted. Everything else must be a refusal, and an end."""
    context = context or mqtt_wire.tls_context(service.ca, pem)
    try:
        wire = mqtt_wire.Wire(service.listeners["device"], context)
    except (ssl.SSLError, ConnectionError):
        return False
    with wire:
        wire.send(mqtt.connect(identifier))
        try:
            found = wire.read()
        except mqtt_wire.Closed:
            return False
        assert found.kind == Kind.CONNACK
        if found.reason == 0:
            wire.send(mqtt.disconnect())
        wire.until_closed()
        return found.reason == 0


def still_serves(device):
    """Asserts that a device connects, and is answered."""
    link = device.connect()
    link.settled()
    link.leave()


# Certificates.


@pytest.fixture(scope="module")
def authority(shared):
    return Authority.of_service(shared, "device")


def device_name(identifier=NOBODY):
    return [uri(f"urn:herald:device:{identifier}")]


def test_a_certificate_of_the_device_authority_is_accepted(shared, authority, tmp_path):
    # The control of the refusals below: each of their certificates differs from this one in one point.
    pem = authority.issue(tmp_path / "good.pem", subject=NOBODY, names=device_name())
    assert is_accepted(shared, pem, NOBODY)


def test_a_connection_without_certificate_is_refused(shared, device):
    assert not is_accepted(shared, None, device.id)
    still_serves(device)


KEY_CERT_SIGN = x509.KeyUsage(
    digital_signature=False, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)
WRONG = {
    "expired": {"begins": -2 * DAY, "ends": -DAY},
    "expired-a-second-ago": {"ends": -datetime.timedelta(seconds=1)},
    "not-yet-valid": {"begins": DAY / 2},
    "for-servers": {"usages": [ExtendedKeyUsageOID.SERVER_AUTH]},
    "for-signing-code": {"usages": [ExtendedKeyUsageOID.CODE_SIGNING]},
    "for-anything": {"usages": [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]},
    "for-nothing-said": {"usages": ()},
    "an-authoritys": {"authority": True},
    "a-key-for-signing-certificates": {"key_usage": KEY_CERT_SIGN},
    "no-name-but-the-common-one": {"names": []},
    "two-names": {"names": device_name() + device_name("second")},
    "the-same-name-twice": {"names": device_name() * 2},
    "a-dns-name-beside-it": {"names": device_name() + [x509.DNSName("localhost")]},
    "a-dns-name": {"names": [x509.DNSName(NOBODY)]},
    "a-mail-address": {"names": [x509.RFC822Name(f"{NOBODY}@example.com")]},
    "an-address": {"names": [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]},
    "a-registered-number": {"names": [x509.RegisteredID(x509.ObjectIdentifier("1.2.3.4"))]},
    "a-directory-name": {"names": [x509.DirectoryName(x509.Name([]))]},
    "another-urn": {"names": [uri(f"urn:herald:provider:{NOBODY}")]},
    "a-url": {"names": [uri(f"https://example.com/urn:herald:device:{NOBODY}")]},
    "no-identifier": {"names": [uri("urn:herald:device:")]},
    "another-identifier": {"names": device_name("another-device")},
    "a-part-of-it": {"names": device_name(NOBODY[:-1])},
    "more-than-it": {"names": device_name(f"{NOBODY}:more")},
    "a-wildcard": {"names": device_name("*")},
    "a-weak-key": {"key": rsa.generate_private_key(65537, 1024)},
    "a-weak-curve": {"key": ec.generate_private_key(ec.SECP192R1())},
}


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS-1.2", "TLS-1.3"])
@pytest.mark.parametrize("fault", WRONG.values(), ids=WRONG)
def test_a_certificate_with_one_fault_is_refused(shared, authority, tmp_path, fault, tls):
    pem = authority.issue(tmp_path / "faulty.pem", **{"subject": NOBODY, "names": device_name(), **fault})
    context = mqtt_wire.tls_context(shared.ca, version=tls)
    # The client of this test accepts weak keys.
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(str(pem))
    assert not is_accepted(shared, pem, NOBODY, context)


ODD = ["a/b", "a+b", "a#b", "../a", "a b", "a\tb", "$SYS", "a.*", "a>b", "x" * 300, "%61", "a%00b"]


@pytest.mark.parametrize("identifier", ODD, ids=repr)
def test_an_identifier_with_special_characters_is_refused(shared, authority, tmp_path, identifier):
    pem = authority.issue(tmp_path / "odd.pem", subject="odd", names=device_name(identifier))
    assert not is_accepted(shared, pem, identifier)


@pytest.mark.parametrize("name", ["same", "other"])
def test_a_certificate_of_another_authority_is_refused(shared, authority, device, tmp_path, name):
    subject = authority.certificate.subject if name == "same" else "Another Authority"
    strange = Authority.foreign(subject)
    pem = strange.issue(
        tmp_path / "strange.pem", subject=device.id, names=device_name(device.id), chain=[strange.certificate]
    )
    assert not is_accepted(shared, pem, device.id)
    still_serves(device)


def test_a_self_signed_certificate_is_refused(shared, device, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    itself = Authority.foreign(device.id)
    itself.key = key
    pem = itself.issue(tmp_path / "self.pem", subject=device.id, names=device_name(device.id), key=key)
    assert not is_accepted(shared, pem, device.id)


def test_a_certificate_signed_by_a_device_is_refused(shared, device, other, tmp_path):
    signer = Authority.of_file(other.path)
    pem = signer.issue(
        tmp_path / "grandchild.pem", subject=device.id, names=device_name(device.id), chain=[signer.certificate]
    )
    assert not is_accepted(shared, pem, device.id)


def test_a_device_certificate_of_another_service_is_refused(shared, fresh, device):
    elsewhere = fresh()
    herald("init", "--data", elsewhere.data)
    pem, identifier = elsewhere.device()
    assert not is_accepted(shared, pem, identifier)
    still_serves(device)


def test_a_provider_certificate_is_refused_by_the_device_listener(shared, provider_pem, device):
    assert not is_accepted(shared, provider_pem, device.id)


def test_a_provider_certificate_that_names_a_device_is_refused(shared, device, tmp_path):
    providers = Authority.of_service(shared, "provider")
    pem = providers.issue(tmp_path / "both.pem", subject=device.id, names=device_name(device.id))
    assert not is_accepted(shared, pem, device.id)


def test_a_device_certificate_is_refused_by_the_provider_listener(shared, device):
    token = device.connect().register()
    with contextlib.suppress(ssl.SSLError, ConnectionError, Disconnected):
        with Provider(shared, device.path) as stranger:
            assert stranger.push(token, HELLO).status == 403


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=["1.0", "1.1"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tls_before_1_2_is_refused(shared, device, version):
    context = mqtt_wire.tls_context(shared.ca, device.path, version)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        mqtt_wire.Wire(shared.listeners["device"], context)


# Revocation.


@pytest.fixture
def revoke(shared):
    def revoke(device):
        herald("device", "revoke", device.id, "--data", shared.data)

    return revoke


def test_a_revoked_device_is_refused(shared, device, other, revoke):
    device.connect().leave()
    revoke(device)
    assert not is_accepted(shared, device.path, device.id)
    still_serves(other)


def test_the_live_connection_of_a_revoked_device_ends(shared, enroll, other, revoke, version):
    def seconds():
        device = enroll(shared)
        link, bystander = device.connect(version), other.connect(version)
        revoke(device)
        began = time.monotonic()
        link.refused(Reason.NOT_AUTHORIZED)
        taken = time.monotonic() - began
        bystander.settled()
        return taken

    # At once, and not when the certificates are looked through, every ten seconds.
    once_within(3, seconds)


def test_a_revoked_device_is_sent_nothing_more(device, revoke, provider):
    link = device.stay()
    token = link.register()
    revoke(device)
    provider.push(token, HELLO)
    assert not [found for found in link.until_closed() if found.kind == Kind.PUBLISH]


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS-1.2", "TLS-1.3"])
def test_a_resumed_session_of_a_revoked_device_is_refused(shared, device, revoke, tls):
    context = mqtt_wire.tls_context(shared.ca, device.path, tls)

    def connect(session=None):
        wire = mqtt_wire.Wire(shared.listeners["device"], context, session=session)
        wire.send(mqtt.connect(device.id))
        return wire

    with connect() as first:
        assert first.expect(Kind.CONNACK).reason == 0
        session = first.socket.session
    with connect(session) as second:
        assert second.expect(Kind.CONNACK).reason == 0
        session = second.socket.session
    revoke(device)
    try:
        with connect(session) as third:
            assert all(found.reason >= 0x80 for found in third.until_closed())
    except (ssl.SSLError, ConnectionError):
        pass


@pytest.mark.parametrize("tls", ["-tls1_2", "-tls1_3"])
def test_openssl_cannot_resume_the_session_of_a_revoked_device(shared, device, revoke, tls, tmp_path):
    ticket = tmp_path / "session.pem"
    connect = mqtt.connect(device.id)

    def s_client(*options):
        command = [
            "openssl", "s_client", "-connect", f"127.0.0.1:{shared.listeners['device']}", "-servername", "localhost",
            "-CAfile", str(shared.ca), "-cert", str(device.path), "-key", str(device.path), tls, "-quiet",
            "-no_ign_eof", *options,
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        # A refused client exits before it has read everything.
        with process, contextlib.suppress(BrokenPipeError):
            process.stdin.write(connect)
            answer = process.stdout.read(4)
            process.stdin.write(mqtt.disconnect())
            process.stdout.read()
        return answer

    # CONNACK, some length, no session, success.
    assert s_client("-sess_out", str(ticket))[3:] == b"\0"
    revoke(device)
    answer = s_client("-sess_in", str(ticket)) if ticket.exists() else b""
    assert len(answer) < 4 or answer[3] >= 0x80


def test_a_device_revoked_offline_is_refused(fresh, enroll):
    service = fresh().start()
    device, other = enroll(service), enroll(service)
    service.stop()
    herald("device", "revoke", device.id, "--data", service.data)
    service.start()
    assert not is_accepted(service, device.path, device.id)
    other.connect().settled()
    listed = json.loads(herald("device", "list", "--data", service.data, "--json").stdout)
    assert {entry["id"]: "revoked" in entry for entry in listed} == {device.id: True, other.id: False}


def attempts(service, device, context, session):
    """Resumes connections, each of which takes over from the one before, until one is refused. Returns the accepted ones."""
    accepted = []
    for _ in range(1000):
        try:
            wire = mqtt_wire.Wire(service.listeners["device"], context, session=session)
            wire.send(mqtt.connect(device.id))
            found = wire.read()
        except (ssl.SSLError, ConnectionError, mqtt_wire.Closed):
            return accepted
        if found.reason:
            wire.close()
            return accepted
        accepted.append(wire)
    raise AssertionError("a thousand connections after the revocation began, and none was refused")


def test_every_revocation_takes_effect_at_once(shared, enroll, other, rounds):
    """A device is revoked while its connection is open and while it connects: all its connections end, and no further begins."""
    token = (shared.data / "run" / "admin.token").read_text().strip()
    console = f"http://127.0.0.1:{shared.listeners['console']}"
    bystander = other.connect()
    resumed = raced = 0
    waits = []
    for number in rounds:
        draw = rounds.random(number)
        version = draw.choice([ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
        device = enroll(shared)
        context = mqtt_wire.tls_context(shared.ca, device.path, version)
        with mqtt_wire.Wire(shared.listeners["device"], context) as first:
            first.send(mqtt.connect(device.id))
            assert first.expect(Kind.CONNACK).reason == 0
            session = first.socket.session
        live = mqtt_wire.Wire(shared.listeners["device"], context, session=session)
        live.send(mqtt.connect(device.id))
        assert live.expect(Kind.CONNACK).reason == 0
        resumed += live.socket.session_reused
        with live, concurrent.futures.ThreadPoolExecutor(1) as pool:
            race = pool.submit(attempts, shared, device, context, session) if draw.random() < 0.5 else None
            request = urllib.request.Request(
                f"{console}/v1/devices/{device.id}/revoke", method="POST", headers={"authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                assert answer.status == 200
            # From the answer on, resumed or not.
            for session in (live.socket.session, None):
                with contextlib.suppress(ssl.SSLError, ConnectionError), mqtt_wire.Wire(
                    shared.listeners["device"], context, session=session
                ) as late:
                    late.send(mqtt.connect(device.id))
                    reasons = {found.reason for found in late.until_closed()}
                    assert reasons <= {Reason.NOT_AUTHORIZED}, rounds.again(number)
            began = time.monotonic()
            for wire in [live, *(race.result() if race else [])]:
                with wire:
                    wire.until_closed()
                raced += wire is not live
            waits.append(time.monotonic() - began)
        bystander.settled()
    print(f"{rounds.done} revocations, {resumed} on a resumed connection, {raced} connections accepted while one was under way")
    assert resumed
    # Not when certificates are looked through, which is every ten seconds: after one such look, the next is as far away. On a
    # machine that pauses, some take as long by chance.
    assert min(waits) < 3, waits


# Garbage.


def end_of(plain, timeout=PATIENCE):
    """Reads until the service closes; the seconds that it took."""
    began = time.monotonic()
    plain.settimeout(timeout)
    try:
        while plain.recv(65536):
            pass
    except TimeoutError:
        raise AssertionError(f"still open after {timeout} s") from None
    except (ssl.SSLError, ConnectionError):
        pass
    finally:
        plain.close()
    return time.monotonic() - began


def dial(service):
    return socket.create_connection(("127.0.0.1", service.listeners["device"]), timeout=PATIENCE)


NOISE = {
    "random": os.urandom(4096),
    "zeroes": bytes(4096),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "http-2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "mqtt-without-tls": mqtt.connect("device") + mqtt.PINGREQ,
    "a-record-that-is-too-long": b"\x16\x03\x01\xff\xff" + bytes(4096),
    "an-alert": b"\x15\x03\x03\x00\x02\x02\x28",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_noise_before_the_handshake_ends_the_connection(shared, steady, noise):
    # A handshake is waited for ten seconds: it is the noise that ends it.
    once_within(9, lambda: seconds_of(shared, steady, noise))


def seconds_of(shared, steady, noise):
    """Makes noise on a connection, and waits until the service closes it."""
    plain = dial(shared)
    # The service may have ended the connection before the last byte of it.
    with contextlib.suppress(OSError):
        plain.sendall(noise)
        # No more comes: what was sent decides.
        plain.shutdown(socket.SHUT_WR)
    taken = end_of(plain)
    still_serves(steady)
    return taken


@pytest.mark.parametrize("name", ["random", "zeroes", "http-2"])
def test_noise_after_the_handshake_ends_the_connection(steady, name):
    wire = steady.wire()
    wire.send(NOISE[name])
    wire.shut(*range(0x80, 0x100))
    still_serves(steady)


def test_noise_after_the_connack_ends_the_connection(steady):
    link = steady.connect()
    link.send(b"\x00" + os.urandom(4096))
    link.until_closed()
    still_serves(steady)


def hello(device):
    """A ClientHello, as Python's own TLS writes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = mqtt_wire.tls_context(device.service.ca).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.fixture(scope="module")
def expiring(shared, authority, tmp_path_factory):
    """The connection of a device whose certificate expires within seconds, and nothing else happens to it."""
    pem = tmp_path_factory.mktemp("expiring") / "short.pem"
    # A busy machine needs some of that until it has connected.
    for seconds in (8, 30, 60):
        authority.issue(pem, subject=NOBODY, names=device_name(), ends=datetime.timedelta(seconds=seconds))
        with contextlib.suppress(ssl.SSLError, ConnectionError, mqtt_wire.Closed):
            wire = mqtt_wire.Wire(shared.listeners["device"], mqtt_wire.tls_context(shared.ca, pem))
            wire.send(mqtt.connect(NOBODY))
            if wire.expect(Kind.CONNACK).reason == 0:
                break
    with wire:
        yield wire


@pytest.mark.slow
def test_a_half_packet_is_timed_out(shared, steady, expiring):
    """Silence at every stage of a connection; all at once, since each takes as long as the service has patience.

    The time of `expiring` runs meanwhile.
    """
    unknown = refused(shared, "devices", "unknown")
    silent, half_hello, whole_hello = (dial(shared) for _ in range(3))
    half_hello.sendall(hello(steady)[:100])
    whole_hello.sendall(hello(steady))
    shaken, half_connect = steady.wire(), steady.wire()
    half_connect.send(mqtt.connect(steady.id)[:-3])
    stages = {
        "nothing": silent, "half a ClientHello": half_hello, "a ClientHello": whole_hello,
        "a handshake": shaken.socket, "half a CONNECT": half_connect.socket,
    }
    for plain in stages.values():
        end_of(plain)
    # Each by the time limit of its stage, and none by the next, half a minute for the client to become known.
    assert refused(shared, "devices", "unknown") == unknown
    still_serves(steady)


def test_a_certificate_that_expires_ends_its_connection(expiring):
    expiring.refused(Reason.NOT_AUTHORIZED, timeout=2 * PATIENCE)


def test_a_connect_that_stops_halfway_is_timed_out(steady):
    wire = steady.wire()
    for byte in mqtt.connect(steady.id)[:-1]:
        wire.send(bytes([byte]))
        with contextlib.suppress(mqtt_wire.Silence):
            try:
                wire.read(0.5)
            except mqtt_wire.Closed:
                break
    else:
        raise AssertionError("bytes that trickle in buy time")
    end_of(wire.socket)


def test_abandoned_connections_leave_nothing_behind(shared, steady):
    """File descriptors are back where they were after a hundred ends of every kind."""
    still_serves(steady)
    files = f"/proc/{shared.pid}/fd"
    before = len(os.listdir(files))
    for number in range(100):
        match number % 4:
            case 0:
                plain = dial(shared)
                plain.sendall(os.urandom(100))
                plain.close()
            case 1:
                plain = dial(shared)
                plain.sendall(hello(steady)[: 50 + number])
                plain.close()
            case 2:
                steady.wire().close()
            case 3:
                wire = steady.wire()
                wire.send(mqtt.connect(steady.id)[: 5 + number % 10])
                wire.close()
    eventually(lambda: len(os.listdir(files)) <= before + 2, what="the end of all that was left open")
    still_serves(steady)


def test_hundreds_of_idle_handshakes_block_nobody(shared, steady):
    idle = [dial(shared) for _ in range(300)]
    still_serves(steady)
    for plain in idle:
        plain.close()


def test_a_device_that_does_not_read_delays_nobody(shared, device, other, provider):
    stuck = device.connect(expiry=LONG)
    token = stuck.register()
    healthy = other.connect()
    other_token = healthy.register()
    for number in range(200):
        assert provider.push(token, {"n": number, "fill": "x" * 4000}).status == 200
        if number % 50 == 0:
            assert provider.push(other_token, HELLO).status == 200
            assert healthy.notification().payload == HELLO
    stuck.close()
    # The newest unread notification waits.
    link = device.stay()
    payload = b""
    while not payload.startswith(b'{"n":199,'):
        payload = link.notification().payload
