"""Refused devices: the log and metrics of the service, and the messages of the agent."""

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
from service import HERALD, PATIENCE, eventually, herald

NOBODY = "bespoke-0123456789"


@pytest.fixture
def service(fresh):
    return fresh("--log-level", "info").start()


def counted(service, reason):
    """The number of connections that the device listener refused for this reason."""
    return refused(service, "devices", reason)


def attempt_connection(service, context):
    try:
        with mqtt_wire.Wire(service.listeners["device"], context) as wire:
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
def test_a_certificates_fault_is_logged_and_counted(service, tmp_path, reason, tls):
    fault, words = FAULTS[reason]
    authority = Authority.of_service(service, "device")
    pem = authority.issue(
        tmp_path / "faulty.pem", **{"subject": NOBODY, "names": [uri(f"urn:herald:device:{NOBODY}")], **fault}
    )
    assert attempt_connection(service, mqtt_wire.tls_context(service.ca, pem, tls)) is None
    eventually(lambda: counted(service, reason) == 1, what="the count")
    (line,) = told(service, 1)
    assert words in line and "127.0.0.1" in line and "devices" in line


@pytest.mark.parametrize("tls", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLS-1.2", "TLS-1.3"])
def test_a_client_that_does_not_trust_the_service_is_logged(service, tls):
    """OpenSSL sends its alert without encryption under TLS 1.3, which BoringSSL reports as a bad packet length."""
    distrustful = ssl.create_default_context()
    distrustful.minimum_version = distrustful.maximum_version = tls
    assert attempt_connection(service, distrustful) is None
    eventually(lambda: counted(service, "alert") == 1, what="the count")
    assert counted(service, "failed") == 0
    (line,) = told(service, 1)
    assert "does not accept this service's certificate (unknown_ca)" in line and "give it ca.pem" in line


def test_foreign_certificates_are_logged_once_and_all_counted(service, tmp_path):
    pem = Authority.foreign("Herald device authority").issue(tmp_path / "foreign.pem", subject=NOBODY)
    foreign, bare = mqtt_wire.tls_context(service.ca, pem), mqtt_wire.tls_context(service.ca)
    for _ in range(20):
        attempt_connection(service, foreign)
        attempt_connection(service, bare)
    # A client that stands still for ten seconds is refused for its handshake's time.
    counts = lambda: [counted(service, reason) for reason in ("other_authority", "no_certificate", "timeout")]
    eventually(lambda: sum(counts()) == 40 and counts()[2] < 20, what="the counts")
    lines = told(service, 2)
    assert len(lines) == 2
    assert any("another authority" in line for line in lines)
    assert any("showed no certificate" in line for line in lines)


def test_noise_is_logged_once(service):
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", service.listeners["device"])) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.settimeout(PATIENCE)
            while stranger.recv(1024):
                pass
    eventually(lambda: counted(service, "no_tls") + counted(service, "timeout") == 10, what="the count")
    (line,) = told(service, 1)
    assert "does not speak TLS" in line


def test_a_silent_handshake_is_counted_once(service):
    """By its silence, and not again by the end that the service makes of it."""
    with socket.create_connection(("127.0.0.1", service.listeners["device"]), timeout=PATIENCE) as stranger:
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
def test_a_revoked_device_gets_the_reason_on_reconnect(service, enroll, version):
    device = enroll(service)
    herald("device", "revoke", device.id, "--data", service.data)
    context = mqtt_wire.tls_context(service.ca, device.path)
    with mqtt_wire.Wire(service.listeners["device"], context, version=version) as wire:
        wire.send(mqtt.connect(device.id, version=version))
        connack = wire.read()
        assert connack.kind == Kind.CONNACK
        assert connack.reason == (5 if version == 4 else Reason.NOT_AUTHORIZED)
        wire.until_closed()
    eventually(lambda: counted(service, "revoked") == 1, what="the count")
    (line,) = told(service, 1)
    assert "the certificate is revoked" in line


#: The exit status of an agent whose service never accepts its certificate again.
DISMISSED = 77


def run_agent(service, pem):
    return subprocess.Popen(
        [
            HERALD, "agent", "run", "--identity", pem, "--ca", service.ca,
            "--service", "127.0.0.1", "--device-port", str(service.listeners['device']), "--app", "com.example.app",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def agent(service, pem):
    """The output of an agent that exits by itself."""
    process = run_agent(service, pem)
    output, errors = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def test_the_agent_of_a_revoked_device_exits_with_the_reason(service):
    pem, identifier = service.device()
    herald("device", "revoke", identifier, "--data", service.data)
    result = agent(service, pem)
    line = one_line(result)
    assert "the certificate is revoked" in line and "herald agent activate" in line
    assert result.returncode == DISMISSED


def test_the_agent_of_a_device_that_is_revoked_while_it_is_connected_exits_with_the_reason(service):
    pem, identifier = service.device()
    with run_agent(service, pem) as process:
        try:
            while not process.stdout.readline().startswith("connected as"):
                assert process.poll() is None
            herald("device", "revoke", identifier, "--data", service.data)
            output, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    (line,) = errors.splitlines()
    assert "the certificate is revoked" in line and "herald agent activate" in line
    assert process.returncode == DISMISSED and "the certificate is not accepted any more" in output


@pytest.mark.parametrize("fault", ["foreign", "expired"])
def test_an_agent_with_a_refused_certificate_exits_with_the_reason(service, tmp_path, fault):
    authority = Authority.foreign("elsewhere") if fault == "foreign" else Authority.of_service(service, "device")
    ends = -DAY / 2 if fault == "expired" else DAY
    pem = authority.issue(
        tmp_path / "agent.pem", subject=NOBODY, names=[uri(f"urn:herald:device:{NOBODY}")], begins=-DAY, ends=ends
    )
    pem.chmod(0o600)
    result = agent(service, pem)
    line = one_line(result)
    # The operator of the service may have put another authority there by mistake.
    assert result.returncode == (DISMISSED if fault == "expired" else 1)
    words = "it has expired" if fault == "expired" else "the peer does not trust its authority"
    assert f"refuses this device's certificate: {words}" in line
    assert "herald agent activate" in line and "checkouts" not in line and "BoringSSL" not in line
