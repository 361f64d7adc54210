"""A device that is not let in: what its operator reads at the service, and what its owner reads at the device."""

import re
import socket
import ssl
import subprocess

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

import mqtt_packets as mqtt
import mqtt_wire
from certificates import DAY, Authority, uri
from commands import one_line
from mqtt_packets import Kind, Reason
from refusals import refused, told
from service import HERALD, eventually, herald

NOBODY = "bespoke-0123456789"


@pytest.fixture
def service(fresh):
    return fresh("--log-level", "info").start()


def counted(service, reason):
    """How often the devices' door has refused a connection for this reason."""
    return refused(service, "devices", reason)


def knock(service, context):
    try:
        with mqtt_wire.Wire(service.doors["device"], context) as wire:
            wire.send(mqtt.connect(NOBODY))
            return wire.read()
    except (ssl.SSLError, ConnectionError, mqtt_wire.Closed):
        return None


FAULTS = {
    "expired": ({"begins": -2 * DAY, "ends": -DAY}, "the certificate has expired"),
    "not_yet_valid": ({"begins": DAY / 2}, "the certificate is not valid yet"),
    "unfit": ({"usages": [ExtendedKeyUsageOID.SERVER_AUTH]}, "the certificate is not for TLS clients"),
}


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS-1.2", "TLS-1.3"])
@pytest.mark.parametrize("reason", FAULTS)
def test_what_is_wrong_with_a_certificate_is_told_and_counted(service, tmp_path, reason, tls):
    fault, words = FAULTS[reason]
    authority = Authority.of_service(service, "device")
    pem = authority.issue(
        tmp_path / "faulty.pem", **{"subject": NOBODY, "names": [uri(f"urn:herald:device:{NOBODY}")], **fault}
    )
    assert knock(service, mqtt_wire.tls_context(service.ca, pem, tls)) is None
    eventually(lambda: counted(service, reason) == 1, what="the count")
    (line,) = told(service, 1)
    assert words in line and "127.0.0.1" in line and "devices" in line


def test_strangers_are_told_once_and_all_are_counted(service, tmp_path):
    pem = Authority.strange("Herald device authority").issue(tmp_path / "foreign.pem", subject=NOBODY)
    foreign, bare = mqtt_wire.tls_context(service.ca, pem), mqtt_wire.tls_context(service.ca)
    for _ in range(20):
        knock(service, foreign)
        knock(service, bare)
    eventually(lambda: counted(service, "other_authority") == counted(service, "no_certificate") == 20, what="the counts")
    lines = told(service, 2)
    assert len(lines) == 2
    assert any("of another authority" in line for line in lines)
    assert any("showed no certificate" in line for line in lines)


def test_noise_is_told_once(service):
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", service.doors["device"])) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.settimeout(10)
            while stranger.recv(1024):
                pass
    eventually(lambda: counted(service, "no_tls") == 10, what="the count")
    (line,) = told(service, 1)
    assert "not TLS" in line


def test_who_begins_and_falls_silent_is_counted_once(service):
    """By its silence, and not again by the end that the service makes of it."""
    with socket.create_connection(("127.0.0.1", service.doors["device"]), timeout=30) as stranger:
        # The head of a ClientHello.
        stranger.sendall(bytes.fromhex("160301020001"))
        try:
            while stranger.recv(1024):
                pass
        except ConnectionResetError:
            pass
    eventually(lambda: counted(service, "timeout") == 1, what="the count")
    assert counted(service, "ended") == counted(service, "no_tls") == counted(service, "failed") == 0
    assert told(service) == []


@pytest.mark.parametrize("version", [4, 5], ids=["3.1.1", "5"])
def test_a_revoked_device_is_told_so_when_it_comes_again(service, enroll, version):
    device = enroll(service)
    herald("device", "revoke", device.id, "--data", service.data)
    context = mqtt_wire.tls_context(service.ca, device.path)
    with mqtt_wire.Wire(service.doors["device"], context, version=version) as wire:
        wire.send(mqtt.connect(device.id, version=version))
        connack = wire.read()
        assert connack.kind == Kind.CONNACK
        assert connack.reason == (5 if version == 4 else Reason.NOT_AUTHORIZED)
        wire.until_closed()
    eventually(lambda: counted(service, "revoked") == 1, what="the count")
    (line,) = told(service, 1)
    assert "the certificate is revoked" in line


def agent(service, pem):
    """What an agent says whose run ends by itself."""
    return subprocess.run(
        [
            HERALD, "agent", "run", "--identity", pem, "--ca", service.ca,
            "--service", f"127.0.0.1:{service.doors['device']}", "--app", "com.example.app",
        ],
        capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
    )


def test_the_agent_of_a_revoked_device_ends_and_says_why(service):
    pem, identifier = service.device()
    herald("device", "revoke", identifier, "--data", service.data)
    line = one_line(agent(service, pem))
    assert "the certificate is revoked" in line and "herald agent activate" in line


@pytest.mark.parametrize("fault", ["foreign", "expired"])
def test_an_agent_whose_certificate_is_refused_ends_and_says_why(service, tmp_path, fault):
    authority = Authority.strange("elsewhere") if fault == "foreign" else Authority.of_service(service, "device")
    ends = -DAY / 2 if fault == "expired" else DAY
    pem = authority.issue(
        tmp_path / "agent.pem", subject=NOBODY, names=[uri(f"urn:herald:device:{NOBODY}")], begins=-DAY, ends=ends
    )
    line = one_line(agent(service, pem))
    words = "it has expired" if fault == "expired" else "it is of no authority that is trusted there"
    assert f"refuses this device's certificate: {words}" in line
    assert "herald agent activate" in line and "checkouts" not in line and "BoringSSL" not in line
