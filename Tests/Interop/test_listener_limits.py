"""Connections whose client is not authenticated: what they may take of a listener, for how long, and at whose cost."""

import contextlib
import os
import resource
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

import mqtt_packets as mqtt
import mqtt_wire
from est_client import curl
from parties import assert_accepted
from provider import Provider, away_device, connect_tls, tls_context
from refusals import refused, told
from service import HERALD, PATIENCE, eventually, herald

#: Descriptors of a service whose listeners are small: 71 connections for the API, and 16 without authentication for a client.
FEW = "1000"
#: Descriptors with which each listener has a few dozen connections; each event loop takes three.
SCARCE = 400 + 3 * os.cpu_count()


def dial(service, listener="api", source="127.0.0.1"):
    """A TCP connection that says nothing."""
    return socket.create_connection(
        ("127.0.0.1", service.listeners[listener]), timeout=PATIENCE, source_address=(source, 0)
    )


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(4096) != b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False


def made_way(service, listener, reason):
    """The connections of a crowd that are gone for this reason, or in the ten seconds that a handshake is waited for: a machine
    that pauses needs longer to open all of them."""
    return refused(service, listener, reason) + refused(service, listener, "timeout")


@pytest.fixture
def crowd():
    """Connections that are closed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda connection: stack.enter_context(connection)


@pytest.fixture
def small(fresh):
    return fresh(prefix=("prlimit", f"--nofile={FEW}:{FEW}")).start()


@pytest.mark.slow
def test_a_client_that_stays_unknown_is_told_and_closed(fresh):
    service = fresh("--unknown-age", "25s").start()
    token, certificate, key = away_device(service).token, service.provider_certificate(), service.provider_key()
    with Provider(service, certificate) as by_certificate, Provider(service, key=key) as by_token:
        assert_accepted(by_token.push(token))
        begin = time.monotonic()
        stranger = Provider(service)
        # Each PING is a byte that says the client is alive, and nothing about who it is.
        while not stranger.goaways and time.monotonic() - begin < 2 * PATIENCE:
            with contextlib.suppress(Exception):
                stranger.ping()
            time.sleep(0.3)  # pace: a client that drips PINGs
        assert [goaway.additional_data for goaway in stranger.goaways] == [b'{"reason":"IdleTimeout"}']
        # That it ends at all shows that the PINGs buy no time.
        assert 24 < time.monotonic() - begin
        stranger.wait_for_close()
        stranger.close()
        # They connected before the stranger, and would have been closed before it.
        for known in (by_certificate, by_token):
            known.ping()
            assert_accepted(known.push(token))
            assert known.goaways == []
    assert refused(service, "provider API", "unknown") == 1
    assert "did not authenticate in time" in told(service, 1)[0]


def test_one_client_cannot_take_the_places_of_others(small, crowd):
    token, certificate = away_device(small).token, small.provider_certificate()
    with Provider(small) as patient:
        patient.ping()
        strangers = [crowd(dial(small, source="127.0.0.3")) for _ in range(200)]
        eventually(lambda: sum(map(is_open, strangers)) <= 16, what="room in the network of the crowd")
        # The oldest went, so that somebody else behind the same address gets in.
        assert not any(map(is_open, strangers[:100]))
        patient.ping()
        with Provider(small, certificate, source="127.0.0.3") as provider:
            assert_accepted(provider.push(token))
    assert made_way(small, "provider API", "network") >= 184 and refused(small, "provider API", "network")
    assert refused(small, "provider API", "displaced") == 0
    lines = [line for line in told(small, 1) if "127.0.0.3" in line]
    assert len(lines) == 1, "one line for all of them"


def test_a_setting_changes_the_share_of_one_client(fresh, crowd):
    service = fresh("--unknown-share", "50", prefix=("prlimit", f"--nofile={FEW}:{FEW}")).start()
    token, certificate = away_device(service).token, service.provider_certificate()
    for _ in range(200):
        crowd(dial(service, source="127.0.0.3"))
    with Provider(service, certificate, source="127.0.0.3") as provider:
        assert_accepted(provider.push(token))
    # 35 of 71 may stay, and were accepted before the provider's connection; without the setting 16.
    eventually(lambda: made_way(service, "provider API", "network") >= 120, what="connections that made way")
    assert refused(service, "provider API", "network") <= 200 + 1 - 35


def test_at_the_limit_the_oldest_unknown_connection_goes_and_a_known_one_never(small, crowd):
    token, certificate = away_device(small).token, small.provider_certificate()
    with Provider(small, certificate) as known:
        assert_accepted(known.push(token))
        strangers = [crowd(dial(small, source=f"127.0.1.{last}")) for last in range(1, 201)]
        eventually(lambda: sum(map(is_open, strangers)) < 71, what="room for others")
        assert not any(map(is_open, strangers[:100]))
        with Provider(small, certificate) as newcomer:
            assert_accepted(newcomer.push(token))
        assert_accepted(known.push(token))
    assert made_way(small, "provider API", "displaced") >= 130 and refused(small, "provider API", "displaced")
    assert refused(small, "provider API", "limit") == 0


@pytest.mark.parametrize("listener", ["feedback", "binary", "device"])
def test_no_listener_is_taken_by_one_client(small, crowd, enroll, listener):
    strangers = [crowd(dial(small, listener, source="127.0.0.3")) for _ in range(600)]
    name = {"feedback": "feedback service", "binary": "binary interface", "device": "devices"}[listener]
    eventually(lambda: made_way(small, name, "network") >= 600 - 57, what="connections that made way")
    assert refused(small, name, "network")
    # Which of them are left depends on the order in which the kernel hands them over: it delays some when its queue is full.
    assert any(map(is_open, strangers)) or refused(small, name, "timeout")
    if listener == "device":
        enroll(small).connect().leave()
    else:
        with connect_tls(small.listeners[listener], tls_context(small.ca, small.provider_certificate(), alpn=())):
            pass


def test_activation_goes_on_behind_a_crowd(small, crowd):
    for _ in range(200):
        crowd(dial(small, "activation"))
    assert curl(small, "est/cacerts").status == 200
    assert made_way(small, "activation", "network") >= 184 and refused(small, "activation", "network")


def test_a_crowd_leaves_descriptors_to_the_operator(fresh, crowd, enroll):
    limit = SCARCE
    service = fresh(prefix=("prlimit", f"--nofile={limit}:{limit}")).start()


    def is_operated_beside_a_crowd():
        """Operates the service; whether a part of the crowd was there to the end of it."""
        revoked = enroll(service)
        link = revoked.connect()
        strangers = [
            crowd(dial(service, "device", source=f"127.0.2.{last}")) for last in range(1, 251) for _ in range(2)
        ]
        herald("device", "list", "--data", service.data)
        herald("device", "revoke", "--data", service.data, revoked.id)
        link.until_closed()
        with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/health", timeout=PATIENCE) as health:
            assert health.status == 200
        assert len(os.listdir(f"/proc/{service.pid}/fd")) < limit - 64
        return any(map(is_open, strangers))

    # The crowd goes by itself after ten seconds: a machine that pauses needs longer now and then.
    assert any(is_operated_beside_a_crowd() for _ in range(5)), "nothing was done before the crowd had gone"
    enroll(service).connect().leave()


def test_the_soft_limit_of_descriptors_is_raised_at_the_start(fresh):
    service = fresh(prefix=("prlimit", "--nofile=256:2000")).start()
    assert resource.prlimit(service.pid, resource.RLIMIT_NOFILE) == (2000, 2000)
    eventually(lambda: any("fewer connections" in line and "files=2000" in line for line in service.lines), what="a line")


def test_with_too_few_descriptors_the_start_is_refused_in_words(tmp_path):
    command = ["prlimit", "--nofile=128:128", str(HERALD), "serve", "--data", str(tmp_path / "data")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 78
    assert "this process may open 128 files" in result.stderr and "ulimit -n" in result.stderr


def test_a_device_that_sends_no_connect_is_not_known(fresh, enroll):
    # Some 80 connections for devices, of which a client may have 16 without authentication.
    service = fresh(prefix=("prlimit", f"--nofile={SCARCE}:{SCARCE}")).start()
    device = enroll(service)
    context = mqtt_wire.tls_context(service.ca, device.path)
    with device.connect() as link, contextlib.ExitStack() as stack:
        # As many as it takes: each goes by itself after five seconds, and a machine may need longer for all of them.
        for _ in range(400):
            stack.enter_context(mqtt_wire.Wire(service.listeners["device"], context))
            if refused(service, "devices", "network") >= 10:
                break
        eventually(lambda: refused(service, "devices", "network") >= 10, what="silent devices that made way")
        link.send(mqtt.PINGREQ)
        assert link.read().kind == mqtt.Kind.PINGRESP


@pytest.mark.parametrize("listener", ["api", "device", "activation"])
def test_a_client_whose_first_key_does_not_fit_is_asked_again_and_served(shared, listener):
    """HelloRetryRequest: the second ClientHello waits for a turn as the first one does."""
    # A key for P-521, which BoringSSL does not take, and X25519 in reserve.
    command = [
        "openssl", "s_client", "-connect", f"127.0.0.1:{shared.listeners[listener]}", "-servername", "localhost",
        "-CAfile", shared.ca, "-groups", "P-521:X25519", "-tls1_3", "-msg",
    ]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    sent = [line for line in result.stdout.splitlines() if line.startswith(b">>>")]
    assert sum(line.endswith(b", ClientHello") for line in sent) == 2
    assert b"Verify return code: 0 (ok)" in result.stdout
