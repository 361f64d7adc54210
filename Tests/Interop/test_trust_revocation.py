"""Revocation lists of an authority whose key is elsewhere: in force, replaced, missing, overdue, forged; both doors."""

import contextlib
import datetime
import json
import re
import ssl
import subprocess
import urllib.request

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

import mqtt_packets as mqtt
import mqtt_wire
from certificates import Authority
from mqtt_packets import Kind, Reason
from parties import advance
from provider import Disconnected, Provider
from service import Service, eventually, herald

HOUR = 3600
NOBODY = "0" * 64


class Peers:
    """The peers of one door, and their authority, whose key is not in the service's folder."""

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

    def publish(self, *revoked, until=24 * HOUR, authority=None, number=None, encoding=serialization.Encoding.PEM):
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
        new.rename(self.list)

    def peer(self):
        return self.made.pop()

    def gets_in(self, peer):
        try:
            with contextlib.closing(self.connect(peer)):
                return True
        except (Disconnected, ssl.SSLError, ConnectionError, mqtt_wire.Closed):
            return False

    def admits(self, peer):
        """Waits until the service, which looks at its folder every second, lets a peer in."""
        eventually(lambda: self.gets_in(peer), what="admission")

    def refuses(self, peer):
        eventually(lambda: not self.gets_in(peer), what="the refusal")


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
        provider.wait_for_close(timeout=8)
        assert b"BadCertificate" in provider.goaways[0].additional_data


class Devices(Peers):
    @staticmethod
    def issue(service):
        return service.device()[0]

    def connect(self, peer):
        (name,) = x509.load_pem_x509_certificate(peer.read_bytes()).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
        wire = mqtt_wire.Wire(self.service.doors["device"], mqtt_wire.tls_context(self.service.ca, peer))
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
        wire.refused(Reason.NOT_AUTHORIZED, Reason.ADMINISTRATIVE, timeout=8)


@pytest.fixture(params=["provider", "device"])
def peers(request, tmp_path):
    """Peers of one door of a service that has not been started; their list is the service's own, and is gone."""
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
        f"http://127.0.0.1:{service.doors['console']}/metrics", headers={"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        text = answer.read().decode()
    return float(re.search(rf'^{name}{{peers="{kind}"}} (\S+)$', text, re.M)[1])


def test_without_a_list_nobody_gets_in_until_there_is_one(peers):
    peers.service.start()
    peer = peers.peer()
    assert not peers.gets_in(peer)
    eventually(lambda: logged(peers.service, "there is no revocation list: nobody"), what="the line in the log")
    assert metric(peers.service, "herald_revocation_list_current", peers.kind) == 0
    peers.publish()
    peers.admits(peer)
    eventually(lambda: logged(peers.service, "is current again"), what="the line in the log")
    assert metric(peers.service, "herald_revocation_list_current", peers.kind) == 1


def test_a_setting_lets_peers_in_where_there_is_no_list(peers):
    peers.service.start("--revocation-lists", "optional")
    peer = peers.peer()
    assert peers.gets_in(peer)
    eventually(lambda: logged(peers.service, "nobody of these peers counts as revoked"), what="the line in the log")
    # One that appears counts.
    peers.publish(peer)
    peers.refuses(peer)


@pytest.mark.parametrize("encoding", [serialization.Encoding.PEM, serialization.Encoding.DER], ids=["PEM", "DER"])
def test_a_new_list_ends_the_revoked_and_nobody_else(peers, encoding):
    peers.publish(encoding=encoding)
    peers.service.start()
    revoked, healthy = peers.peer(), peers.peer()
    with contextlib.closing(peers.connect(revoked)) as first, contextlib.closing(peers.connect(healthy)) as second:
        peers.publish(revoked, encoding=encoding)
        peers.ends(first)
        peers.works(second)
    peers.refuses(revoked)
    assert peers.gets_in(healthy)


def test_an_overdue_list_lets_nobody_new_in(peers):
    peers.publish(until=HOUR)
    peers.service.start("--clock", "adjustable")
    peer = peers.peer()
    with contextlib.closing(peers.connect(peer)) as connection:
        advance(peers.service, 2 * HOUR)
        assert not peers.gets_in(peer)
        peers.works(connection)
        eventually(lambda: logged(peers.service, "the revocation list is overdue"), what="the line in the log")
        assert metric(peers.service, "herald_revocation_list_seconds_left", peers.kind) < -HOUR / 2
        peers.publish(until=24 * HOUR)
        peers.works(connection)
    # A device's newer connection takes over from the older one.
    peers.admits(peer)


def test_a_grace_keeps_an_overdue_list_in_force(peers):
    peers.publish(until=HOUR)
    peers.service.start("--clock", "adjustable", "--revocation-grace", "3h")
    peer = peers.peer()
    advance(peers.service, 3 * HOUR)
    assert peers.gets_in(peer)
    advance(peers.service, 2 * HOUR)
    assert not peers.gets_in(peer)


@pytest.mark.parametrize("fault", ["signature", "older", "nonsense", "gone"])
def test_a_list_that_is_none_leaves_the_one_in_force(peers, fault):
    revoked, healthy = peers.peer(), peers.peer()
    peers.publish(revoked)
    peers.service.start()
    assert not peers.gets_in(revoked)
    with contextlib.closing(peers.connect(healthy)) as connection:
        match fault:
            case "signature":
                peers.publish(authority=Authority.strange(peers.authority.certificate.subject))
                complaint = "its signature is wrong"
            case "older":
                peers.publish(number=peers.number - 1)
                complaint = "is older than the list in force"
            case "nonsense":
                peers.list.write_bytes(b"nonsense")
                complaint = "is no revocation list"
            case "gone":
                peers.list.unlink()
                complaint = None
        if complaint:
            eventually(lambda: logged(peers.service, complaint), what="the line in the log")
        else:
            # What follows is read after it: a key that comes by the same look at the folder.
            herald("provider", "key", "--data", peers.service.data, "--team", "TEAM123456", "--out",
                   peers.service.data.parent)
        assert not peers.gets_in(revoked)
        peers.works(connection)
    assert peers.gets_in(healthy)


@pytest.mark.parametrize("tls", ["-tls1_2", "-tls1_3"])
def test_openssl_cannot_resume_the_session_of_a_revoked_provider(shared, tls, tmp_path):
    """The certificate of a resumed session is the one of the session before: nothing is checked in its handshake."""
    ticket, pem = tmp_path / "session.pem", shared.provider_certificate()

    def s_client(*options):
        """What the service says first: SETTINGS, and for the refused GOAWAY as well."""
        command = [
            "openssl", "s_client", "-connect", f"127.0.0.1:{shared.doors['api']}", "-servername", "localhost",
            "-alpn", "h2", "-CAfile", str(shared.ca), "-cert", str(pem), "-key", str(pem), tls, "-ign_eof", *options,
        ]
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
        # A request that is refused for its path ends the conversation; an authenticated one gets 404, none gets it before.
        goaway = bytes.fromhex("0000080700000000000000000000000000")
        return subprocess.run(command, input=preface + goaway, capture_output=True, timeout=30).stdout

    first = s_client("-sess_out", str(ticket))
    assert b"BadCertificate" not in first and ticket.exists()
    assert b"Reused" in s_client("-sess_in", str(ticket)), "the service resumes sessions"
    serial = x509.load_pem_x509_certificate(pem.read_bytes()).serial_number
    listed = json.loads(herald("provider", "list", "--data", shared.data, "--json").stdout)
    (id,) = [entry["id"] for entry in listed if entry["serial"] and int(entry["serial"], 16) == serial]
    herald("provider", "revoke", "--data", shared.data, id)
    again = s_client("-sess_in", str(ticket))
    assert b"Reused" not in again and b"BadCertificate" in again
