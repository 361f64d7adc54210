"""Revocation lists of an authority whose key is elsewhere: in force, replaced, missing, overdue, forged; providers and devices."""

import contextlib
import datetime
import http.client
import json
import re
import resource
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import mqtt_packets as mqtt
import mqtt_wire
from certificates import Authority
from mqtt_packets import Kind, Reason
from parties import advance
from provider import Disconnected, Provider
from service import PATIENCE, Service, eventually, herald

HOUR = 3600
NOBODY = "0" * 64


class Peers:
    """The peers of one listener, and their authority, whose key is not in the service's folder."""

    def __init__(self, service, kind):
        self.service = service
        self.kind = kind
        self.authority = Authority.of_service(service, kind)
        self.list = service.data / "trust" / f"{kind}.crl"
        self.number = 1_000_000_000_000
        # Issued while the authority's key is still there.
        self.made = [self.issue(service) for _ in range(2)]
        path = service.data / "trust" / f"{kind}-authority.pem"
        text = path.read_text()
        path.write_text(text[: re.search(r"-----BEGIN [A-Z ]*KEY", text).start()])

    def publish(
        self, *revoked, until=24 * HOUR, authority=None, number=None, encoding=serialization.Encoding.PEM, mode=0o644
    ):
        """Puts a list in place, as a tool of the authority would: by rename."""
        self.number += 1
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.authority.certificate.subject)
            .last_update(now - datetime.timedelta(minutes=1))
            .next_update(now + datetime.timedelta(seconds=until))
            .add_extension(x509.CRLNumber(number or self.number), critical=False)
        )
        for path in revoked:
            serial = x509.load_pem_x509_certificate(path.read_bytes()).serial_number
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            )
        new = self.list.with_suffix(".new")
        new.write_bytes(builder.sign((authority or self.authority).key, hashes.SHA256()).public_bytes(encoding))
        new.chmod(mode)
        new.rename(self.list)

    def peer(self):
        return self.made.pop()

    def is_accepted(self, peer):
        try:
            with contextlib.closing(self.connect(peer)):
                return True
        except (Disconnected, ssl.SSLError, ConnectionError, mqtt_wire.Closed):
            return False

    def admits(self, peer):
        """Waits until the service, which reads its folder every second, accepts a peer."""
        eventually(lambda: self.is_accepted(peer), what="admission")

    def refuses(self, peer):
        eventually(lambda: not self.is_accepted(peer), what="the refusal")


class Providers(Peers):
    @staticmethod
    def issue(service):
        return service.provider_certificate()

    def connect(self, peer):
        provider = Provider(self.service, peer)
        try:
            assert provider.push(NOBODY).reason == "BadDeviceToken"
        except BaseException:
            provider.close()
            raise
        return provider

    @staticmethod
    def works(provider):
        assert provider.push(NOBODY).reason == "BadDeviceToken"

    @staticmethod
    def ends(provider):
        provider.wait_for_close()
        assert b"BadCertificate" in provider.goaways[0].additional_data


class Devices(Peers):
    @staticmethod
    def issue(service):
        return service.device()[0]

    def connect(self, peer):
        (name,) = x509.load_pem_x509_certificate(peer.read_bytes()).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
        wire = mqtt_wire.Wire(self.service.listeners["device"], mqtt_wire.tls_context(self.service.ca, peer))
        try:
            wire.send(mqtt.connect(name.value.removeprefix("urn:herald:device:")))
            connack = wire.read()
            if connack.reason:
                raise Disconnected(f"refused: {connack}")
        except BaseException:
            wire.close()
            raise
        return wire

    @staticmethod
    def works(wire):
        wire.send(mqtt.PINGREQ)
        wire.expect(Kind.PINGRESP)

    @staticmethod
    def ends(wire):
        wire.refused(Reason.NOT_AUTHORIZED)


@pytest.fixture(params=["provider", "device"])
def peers(request, tmp_path):
    """Peers of one listener of a service that has not been started; their list is the service's own, and is gone."""
    service = Service(tmp_path / "data")
    herald("init", "--data", service.data)
    found = (Providers if request.param == "provider" else Devices)(service, request.param)
    found.list.unlink()
    yield found
    service.close()


def logged(service, text):
    return any(text in line for line in service.lines)


def metric(service, name, kind):
    token = (service.data / "run" / "admin.token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{service.listeners['console']}/metrics", headers={"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        text = answer.read().decode()
    label = f'{{peers="{kind}"}}' if kind else ""
    return float(re.search(rf"^{name}{label} (\S+)$", text, re.M)[1])


def health(service):
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/health", timeout=PATIENCE) as answer:
        return json.load(answer)


class Control(http.client.HTTPConnection):
    """A connection to the control socket, which stays open."""

    def __init__(self, service):
        super().__init__("localhost", timeout=PATIENCE)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(service.data / "run" / "control.sock"))

    def reload(self):
        self.request("POST", "/v1/trust/reload")
        answer = self.getresponse()
        return answer.status, answer.read().decode()


@contextlib.contextmanager
def without_descriptors(service):
    """For this time the service can open nothing more.

    A new descriptor's number must be below the limit, and the first three are always taken. A limit at the first free number
    would not do: the service may just have closed, or be about to close, a descriptor with a lower one.
    """
    before = resource.prlimit(service.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, before)


def test_peers_are_refused_until_there_is_a_list(peers):
    peers.service.start()
    peer = peers.peer()
    assert not peers.is_accepted(peer)
    eventually(lambda: logged(peers.service, "there is no revocation list: connections of these peers are refused"), what="the line in the log")
    assert metric(peers.service, "herald_revocation_list_current", peers.kind) == 0
    peers.publish()
    peers.admits(peer)
    eventually(lambda: logged(peers.service, "is current again"), what="the line in the log")
    assert metric(peers.service, "herald_revocation_list_current", peers.kind) == 1


def test_a_setting_accepts_peers_without_a_list(peers):
    peers.service.start("--revocation-lists", "optional")
    peer = peers.peer()
    assert peers.is_accepted(peer)
    eventually(lambda: logged(peers.service, "no peer of this kind counts as revoked"), what="the line in the log")
    # A new list counts.
    peers.publish(peer)
    peers.refuses(peer)


@pytest.mark.parametrize("encoding", [serialization.Encoding.PEM, serialization.Encoding.DER], ids=["PEM", "DER"])
def test_a_new_list_disconnects_only_revoked_peers(peers, encoding):
    peers.publish(encoding=encoding)
    peers.service.start()
    revoked, healthy = peers.peer(), peers.peer()
    with contextlib.closing(peers.connect(revoked)) as first, contextlib.closing(peers.connect(healthy)) as second:
        peers.publish(revoked, encoding=encoding)
        peers.ends(first)
        peers.works(second)
    peers.refuses(revoked)
    assert peers.is_accepted(healthy)


def test_an_overdue_list_refuses_new_connections(peers):
    peers.publish(until=HOUR)
    peers.service.start("--clock", "adjustable")
    peer = peers.peer()
    with contextlib.closing(peers.connect(peer)) as connection:
        advance(peers.service, 2 * HOUR)
        assert not peers.is_accepted(peer)
        peers.works(connection)
        eventually(lambda: logged(peers.service, "the revocation list is overdue"), what="the line in the log")
        expiry = metric(peers.service, "herald_revocation_list_expiry_timestamp_seconds", peers.kind)
        assert abs(expiry - time.time() - HOUR) < HOUR / 2
        peers.publish(until=24 * HOUR)
        peers.works(connection)
    # A device's newer connection takes over from the older one.
    peers.admits(peer)


def test_a_grace_keeps_an_overdue_list_in_force(peers):
    peers.publish(until=HOUR)
    peers.service.start("--clock", "adjustable", "--revocation-grace", "3h")
    peer = peers.peer()
    advance(peers.service, 3 * HOUR)
    assert peers.is_accepted(peer)
    advance(peers.service, 2 * HOUR)
    assert not peers.is_accepted(peer)


@pytest.mark.parametrize("fault", ["signature", "older", "nonsense", "gone"])
def test_an_invalid_list_leaves_the_old_one_in_force(peers, fault):
    revoked, healthy = peers.peer(), peers.peer()
    peers.publish(revoked)
    peers.service.start()
    assert not peers.is_accepted(revoked)
    with contextlib.closing(peers.connect(healthy)) as connection:
        match fault:
            case "signature":
                peers.publish(authority=Authority.foreign(peers.authority.certificate.subject))
                complaint = "its signature is wrong"
            case "older":
                peers.publish(number=peers.number - 1)
                complaint = "is older than the list in memory"
            case "nonsense":
                peers.list.write_bytes(b"nonsense")
                complaint = "is not a revocation list"
            case "gone":
                peers.list.unlink()
                complaint = None
        if complaint:
            eventually(lambda: logged(peers.service, complaint), what="the line in the log")
        else:
            # The service reads the folder once: it sees the key after the list.
            herald("provider", "key", "--data", peers.service.data, "--team", "TEAM123456", "--out",
                   peers.service.data.parent)
        assert not peers.is_accepted(revoked)
        peers.works(connection)
    assert peers.is_accepted(healthy)


def test_a_list_that_others_may_write_counts_once_its_mode_is_mended(peers):
    """The operator does what the log says, and nothing else."""
    peers.publish()
    service = peers.service.start()
    revoked = peers.peer()
    with contextlib.closing(peers.connect(revoked)) as connection:
        peers.publish(revoked, mode=0o664)
        eventually(lambda: logged(service, f"chmod 644 {peers.list}"), what="the line in the log")
        eventually(lambda: metric(service, "herald_trust_reload_failed", None) == 1, what="the metric")
        (warning,) = health(service)["warnings"]
        assert "trust could not be reloaded since" in warning and str(peers.list) in warning
        peers.works(connection)
        peers.list.chmod(0o644)
        peers.ends(connection)
    assert not peers.is_accepted(revoked)
    eventually(lambda: metric(service, "herald_trust_reload_failed", None) == 0, what="the end of the warning")
    assert "warnings" not in health(service)
    assert sum(f"chmod 644 {peers.list}" in line for line in service.lines) == 1


def test_a_list_that_came_while_no_file_could_be_opened_counts_as_soon_as_one_can(peers):
    """Descriptors may run out because of the very peer that is revoked."""
    peers.publish()
    service = peers.service.start()
    revoked = peers.peer()
    with contextlib.closing(peers.connect(revoked)) as connection, contextlib.closing(Control(service)) as control:
        assert control.reload()[0] == 200
        with without_descriptors(service):
            peers.publish(revoked)
            failure = f"cannot read {peers.list}: Too many open files"
            # Each look uses the connection: the service ends it after some time without a request.
            eventually(lambda: control.reload()[0] >= 400 and logged(service, failure), what="the failure")
            for _ in range(2):
                status, words = control.reload()
                assert status >= 400 and "Too many open files" in words
        peers.ends(connection)
        assert control.reload()[0] == 200
    assert not peers.is_accepted(revoked)


def test_a_command_says_that_the_service_does_not_know_of_its_revocation(fresh):
    service = fresh().start()
    names = [service.device()[1] for _ in range(2)]
    keys = service.data / "trust" / "token.keys"
    whole = keys.read_bytes()
    keys.write_bytes(b"nonsense")
    # The second time too: the last attempt at a file has failed.
    for name in names:
        result = herald("device", "revoke", "--data", service.data, name, check=False)
        assert result.returncode != 0
        assert "revoked, but the running service may not know it yet" in result.stderr
        assert "token.keys is damaged" in result.stderr
    listed = json.loads(herald("device", "list", "--data", service.data, "--json").stdout)
    assert all("revoked" in entry for entry in listed if entry["id"] in names)
    keys.write_bytes(whole)
    eventually(lambda: "warnings" not in health(service), what="the end of the warning")
    herald("device", "revoke", "--data", service.data, service.device()[1])


def test_what_was_issued_is_written_also_if_the_service_cannot_reload(fresh, tmp_path):
    service = fresh().start()
    (service.data / "trust" / "token.keys").write_bytes(b"nonsense")

    def issued(*command):
        result = herald(*command, "--data", service.data, check=False)
        assert result.returncode == 1 and "the change is on disk, but the running service may not know it yet" in result.stderr
        return result.stdout

    certificate, device = tmp_path / "provider.pem", tmp_path / "device.pem"
    issued("provider", "certificate", "--topic", "com.example.chat", "--out", certificate)
    id = re.search(r"device +(\S+)", issued("device", "enroll", "--out", device))[1]
    key = re.search(r"key +(\S+)", issued("provider", "key", "--team", "TEAM000001", "--out", tmp_path))[1]
    assert "PRIVATE KEY" in (tmp_path / f"AuthKey_{key}.p8").read_text()
    assert re.search(r"code +\S{45}", issued("device", "invite"))

    order = {"public_key": public_key(), "team": "TEAM000001"}
    with post(service, "/v1/credentials/key", order) as answer:
        assert len(json.load(answer)["id"]) == 10
    # Files that can be read are in force.
    wire = mqtt_wire.Wire(service.listeners["device"], mqtt_wire.tls_context(service.ca, device))
    wire.send(mqtt.connect(id))
    assert wire.expect(Kind.CONNACK).reason == 0
    with Provider(service, certificate) as provider:
        assert provider.push(NOBODY).reason == "BadDeviceToken"


def public_key():
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def post(service, path, body):
    token = (service.data / "run" / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    address = f"http://{service.host}:{service.listeners['console']}{path}"
    return urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers), timeout=PATIENCE)


@pytest.mark.parametrize("tls", ["-tls1_2", "-tls1_3"])
def test_openssl_cannot_resume_the_session_of_a_revoked_provider(shared, tls, tmp_path):
    """The certificate of a resumed session is the one of the session before: nothing is checked in its handshake."""
    ticket, pem = tmp_path / "session.pem", shared.provider_certificate()

    def s_client(*options):
        """The service's first frames: SETTINGS, and GOAWAY for a refused client."""
        command = [
            "openssl", "s_client", "-connect", f"127.0.0.1:{shared.listeners['api']}", "-servername", "localhost",
            "-alpn", "h2", "-CAfile", str(shared.ca), "-cert", str(pem), "-key", str(pem), tls, "-ign_eof", *options,
        ]
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
        # A request that is refused for its path ends the conversation; an authenticated one gets 404, none gets it before.
        goaway = bytes.fromhex("0000080700000000000000000000000000")
        return subprocess.run(command, input=preface + goaway, capture_output=True, timeout=PATIENCE).stdout

    first = s_client("-sess_out", str(ticket))
    assert b"BadCertificate" not in first and ticket.exists()
    assert b"Reused" in s_client("-sess_in", str(ticket)), "the service resumes sessions"
    serial = x509.load_pem_x509_certificate(pem.read_bytes()).serial_number
    listed = json.loads(herald("provider", "list", "--data", shared.data, "--json").stdout)
    (id,) = [entry["id"] for entry in listed if entry.get("serial") and int(entry["serial"], 16) == serial]
    herald("provider", "revoke", "--data", shared.data, id)
    again = s_client("-sess_in", str(ticket))
    assert b"Reused" not in again and b"BadCertificate" in again
