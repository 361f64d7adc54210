"""The PROXY protocol, version 2: the client's address as a trusted load balancer reports it, and from nobody else."""

import contextlib
import ipaddress
import socket
import ssl
import struct
import subprocess
import time

import pytest

from parties import assert_accepted
from provider import Provider, away_device
from refusals import refused, told
from service import PATIENCE, Service, eventually, free_port, once_within

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
#: The load balancer's address, and the network that the service trusts.
BALANCER, TRUSTED = "127.0.0.9", "127.0.0.8/29"
CLIENT = "203.0.113.7"


def header(client=CLIENT, command=1, more=b"", family=None):
    """The first bytes of a load balancer; `more` are further fields."""
    if client is None:
        body, code = b"", 0
    elif ":" in client:
        body, code = ipaddress.ip_address(client).packed + ipaddress.ip_address("::1").packed + struct.pack(">HH", 1, 2), 0x21
    else:
        body, code = ipaddress.ip_address(client).packed + bytes([127, 0, 0, 1]) + struct.pack(">HH", 1, 2), 0x11
    body += more
    return SIGNATURE + bytes([0x20 | command, code if family is None else family]) + struct.pack(">H", len(body)) + body


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    # Few descriptors: a client may have 16 connections to the API without authentication.
    service = Service(
        tmp_path_factory.mktemp("proxied") / "data", "--proxy-protocol", TRUSTED, prefix=("prlimit", "--nofile=1000:1000")
    ).start()
    service.token = away_device(service).token
    service.certificate = service.provider_certificate()
    yield service
    service.close()


def dial(service, first, listener="api", source=BALANCER):
    plain = socket.create_connection(
        ("127.0.0.1", service.listeners[listener]), timeout=PATIENCE, source_address=(source, 0)
    )
    plain.sendall(first)
    return plain


def is_closed(plain):
    """Whether the service closes the connection, perhaps after an alert of TLS."""
    try:
        while plain.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "first",
    [header(), header("2001:db8::7"), header(more=b"\x04\x00\x03abc"), header(None, command=0), header(None)],
    ids=["IPv4", "IPv6", "further fields", "health check", "unknown client"],
)
def test_a_load_balancers_connection_is_served(service, first):
    with Provider(service, service.certificate, source=BALANCER, first=first) as provider:
        assert_accepted(provider.push(service.token))


@pytest.mark.parametrize("listener", ["api", "binary", "feedback", "device", "activation"])
def test_every_listener_with_tls_takes_it_and_logs_the_reported_address(service, listener):
    client = f"198.51.100.{len(listener)}"
    with dial(service, header(client) + b"this is not TLS", listener) as plain:
        assert is_closed(plain)
    eventually(lambda: any(client in line for line in told(service)), what="a line with the client's address")
    # Before the connection, whose handshake may take ten seconds.
    context = ssl.create_default_context(cafile=str(service.ca))
    if listener == "device":
        context.load_cert_chain(str(service.device()[0]))
    with dial(service, header(client), listener) as plain:
        with context.wrap_socket(plain, server_hostname="localhost"):
            pass


@pytest.mark.parametrize(
    "first",
    [
        b"\x16\x03\x01\x00\x05hello", b"PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n", header(family=0x12), header(command=5),
        SIGNATURE + b"\x31\x11\x00\x0c" + b"\0" * 12, SIGNATURE + b"\x21\x11\xff\xff" + b"\0" * 100, SIGNATURE + b"\x21\x21\x00\x0c" + b"\0" * 12,
    ],
    ids=["no header", "version 1", "UDP", "command", "version 3", "too long", "too short"],
)
def test_a_load_balancers_connection_without_a_good_header_is_closed_and_counted(service, first):
    def seconds():
        before = refused(service, "provider API", "proxy_header")
        with dial(service, first) as plain:
            begin = time.monotonic()
            assert is_closed(plain)
            taken = time.monotonic() - begin
        eventually(lambda: refused(service, "provider API", "proxy_header") == before + 1, what="the count")
        return taken

    # Before the header is late, which it is after five seconds.
    once_within(4, seconds)


def test_a_late_header_is_closed_and_counted(service):
    before = refused(service, "provider API", "proxy_header")
    begin = time.monotonic()
    with dial(service, header()[:20]) as plain:
        assert is_closed(plain)
        # The count shows that it was closed as late, and not as a handshake that takes too long.
        assert 4 < time.monotonic() - begin
    eventually(lambda: refused(service, "provider API", "proxy_header") == before + 1, what="the count")


def test_nobody_else_can_claim_an_address(service):
    before = refused(service, "provider API", "no_tls")
    with dial(service, header("192.0.2.99"), source="127.0.0.1") as plain:
        assert is_closed(plain)
    eventually(lambda: refused(service, "provider API", "no_tls") == before + 1, what="the count")
    assert not any("192.0.2.99" in line for line in service.lines)
    # Without a header it is served as ever.
    with Provider(service, service.certificate) as provider:
        assert_accepted(provider.push(service.token))


def test_the_limit_of_a_network_counts_the_reported_addresses(service):
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(Provider(service, source=BALANCER, first=header("203.0.113.8")))
        # As many as it takes: each goes by itself after ten seconds, and a machine may need longer for all of them.
        for _ in range(600):
            stack.enter_context(dial(service, header("203.0.113.9")))
            if refused(service, "provider API", "network") >= 44:
                break
        eventually(lambda: refused(service, "provider API", "network") >= 44, what="connections that made way")
        other.ping()


def try_wrong_code(service, plain):
    """The status of an activation with a wrong code."""
    context = ssl.create_default_context(cafile=str(service.ca))
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(
            b"POST /.well-known/est/simpleenroll HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic eDp5\r\n"
            b"Content-Type: application/pkcs10\r\nContent-Length: 0\r\n\r\n"
        )
        return int(connection.recv(4096).split()[1])


def refused_codes(service, client):
    return [line for line in service.lines if "invitation code refused" in line and client in line]


def test_wrong_codes_count_for_the_reported_address(service):
    def wrong(client):
        return try_wrong_code(service, dial(service, header(client), "activation"))

    # Five are allowed at once, and one more in twelve seconds, which a machine may take.
    statuses = [wrong("198.51.100.77")]
    while statuses[-1] != 429:
        assert len(statuses) < 50
        statuses.append(wrong("198.51.100.77"))
    assert len(statuses) >= 6 and set(statuses[:-1]) == {401}
    assert wrong("198.51.100.78") == 401
    eventually(lambda: refused_codes(service, "198.51.100.77"), what="a line with the client's address")


def test_haproxy_in_front(service, tmp_path):
    ports = {"api": free_port(), "activation": free_port()}
    listens = "".join(
        f"listen {name}\n  bind 127.0.0.1:{port}\n  server herald 127.0.0.1:{service.listeners[name]} send-proxy-v2 "
        f"source {BALANCER} check inter 200 check-send-proxy\n"
        for name, port in ports.items()
    )
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text(
        "global\n  maxconn 100\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n" + listens
    )
    before = refused(service, "provider API", "proxy_header")
    with subprocess.Popen(["haproxy", "-db", "-f", str(configuration)], stderr=subprocess.DEVNULL) as haproxy:
        try:
            def answers():
                with contextlib.suppress(OSError):
                    return Provider(service, service.certificate, port=ports["api"])

            with eventually(answers, what="HAProxy") as provider:
                assert_accepted(provider.push(service.token))
            plain = socket.create_connection(("127.0.0.1", ports["activation"]), source_address=("127.0.0.77", 0))
            assert try_wrong_code(service, plain) == 401
            eventually(lambda: refused_codes(service, "127.0.0.77"), what="a line with the client's address")
            time.sleep(1)  # pace: five health checks
        finally:
            haproxy.terminate()
    # Neither the traffic nor the health checks lacked their header.
    assert refused(service, "provider API", "proxy_header") == before
