"""The binary provider interface, one test for each row of the documents' tables, with bytes made by hand."""

import json
import socket
import ssl
import struct
import subprocess
import time

import pytest

from binary import BAD_TOKEN, PAYLOAD, Binary, accepted, enhanced, feedback, frame, framed, simple, wait_for_end
from parties import OTHER, advance, dead_app
from provider import Disconnected, Provider, away_device, listening_device
from service import PATIENCE, TOPIC, Service, eventually, herald, once_within


@pytest.fixture
def binary(shared, parties):
    with Binary(shared, parties.certificate) as connection:
        yield connection


@pytest.fixture
def device(shared):
    with listening_device(shared) as device:
        yield device


class TestNotifications:
    @pytest.mark.parametrize("form", ["simple", "enhanced", "framed"])
    def test_every_command_reaches_the_device_and_success_is_silent(self, binary, device, form):
        payload = json.dumps({"aps": {"alert": form}}).encode()
        binary.send(
            {
                "simple": simple(device.token, payload),
                "enhanced": enhanced(0xAABBCCDD, device.token, payload),
                "framed": framed(0xAABBCCDD, device.token, payload),
            }[form]
        )
        message = device.next()
        assert message.payload == payload
        assert message.property("apns-priority") == "10"
        assert message.id.endswith("aabbccdd") == (form != "simple")
        assert binary.is_silent()

    @pytest.mark.parametrize("shift", range(5))
    def test_items_come_in_any_order(self, binary, device, shift):
        items = [
            (3, b"\0\0\0\1"), (1, bytes.fromhex(device.token)), (2, PAYLOAD), (4, struct.pack(">I", 0xFFFFFFFF)),
            (5, b"\5"),
        ]
        binary.send(frame(*items[shift:], *items[:shift]))
        assert device.next().property("apns-priority") == "5"

    def test_an_unknown_item_is_ignored(self, binary, device):
        binary.send(frame((77, b"?"), (1, bytes.fromhex(device.token)), (2, PAYLOAD)))
        assert device.next().payload == PAYLOAD

    def test_one_byte_at_a_time(self, binary, device):
        for byte in framed(1, device.token):
            binary.send(bytes([byte]))
        assert device.next().payload == PAYLOAD
        assert binary.is_silent()

    def test_a_payload_of_2048_bytes_is_accepted(self, binary, device):
        payload = b'{"x":"' + b"y" * 2040 + b'"}'
        assert len(payload) == 2048
        for notification in simple(device.token, payload), enhanced(1, device.token, payload), framed(2, device.token, payload):
            binary.send(notification)
            assert device.next().payload == payload

    def test_an_expiration_stores_and_0_does_not(self, shared, parties, binary):
        device = away_device(shared)
        binary.send(framed(1, device.token, b'{"n":1}', expiry=int(time.time()) + 600))
        binary.send(framed(2, device.token, b'{"n":2}', expiry=0))
        binary.send(framed(3, device.token, b'{"n":3}', expiry=1))
        binary.send(enhanced(4, device.token, b'{"n":4}', expiry=0))
        states = lambda: [line["state"] for line in shared.journal("--device", device.id)]
        eventually(lambda: sum(state.startswith("discarded") for state in states()) == 3, what="those that are not stored")
        with device.start():
            message = device.next()
            assert message.json == {"n": 1}
            assert 0 < message.expiry <= 600
        assert len(device.messages) == 1

    @pytest.mark.parametrize("notification", [lambda t: simple(t), lambda t: framed(1, t)], ids=["simple", "framed"])
    def test_a_notification_without_expiration_is_stored_for_thirty_days(self, shared, binary, notification):
        device = away_device(shared)
        binary.send(notification(device.token))
        lines = lambda: [line["state"] for line in shared.journal("--device", device.id)]
        eventually(lambda: any(line.startswith("stored") for line in lines()))
        with device.start():
            assert device.next().expiry > 29 * 86_400

    def test_the_server_name_selects_the_environment(self, shared, parties):
        production, sandbox = away_device(shared), Binary(shared, parties.certificate, name="sandbox.localhost")
        with sandbox:
            sandbox.send(framed(1, production.token))
            assert sandbox.answer() == (8, 1)

    def test_the_topic_of_the_subject_counts(self, shared, parties):
        with Binary(shared, parties.certificate_of_many) as first:
            first.send(framed(1, parties.token))
            assert first.is_silent()
            first.send(framed(2, parties.other_token))
            assert first.answer() == (8, 2)


class TestErrors:
    """Each status of the error response, with its identifier, and everything behind it discarded."""

    @pytest.mark.parametrize(
        ("status", "make"),
        [
            (2, lambda token: enhanced(7, "")),
            (2, lambda token: frame((2, PAYLOAD), (3, b"\0\0\0\7"))),
            (2, lambda token: frame((1, b""), (2, PAYLOAD), (3, b"\0\0\0\7"))),
            (4, lambda token: enhanced(7, token, b"")),
            (4, lambda token: frame((1, bytes.fromhex(token)), (3, b"\0\0\0\7"))),
            (4, lambda token: framed(7, token, b"")),
            (5, lambda token: enhanced(7, token[2:])),
            (5, lambda token: enhanced(7, token + "00")),
            (5, lambda token: framed(7, token + "00" * 68)),
            (7, lambda token: enhanced(7, token, b"{" + b" " * 2047 + b"}")),
            (7, lambda token: framed(7, token, b"{" + b" " * 2047 + b"}")),
            (7, lambda token: framed(7, token, b" " * 65535)),
            (8, lambda token: enhanced(7, BAD_TOKEN)),
            (8, lambda token: framed(7, BAD_TOKEN)),
            (128, lambda token: framed(7, token, b"no JSON")),
            (128, lambda token: framed(7, token, priority=7)),
            (128, lambda token: framed(7, token, b'{"aps":{"content-available":1}}', priority=10)),
            (128, lambda token: frame((3, b"\0\0\0\7"), (1, bytes.fromhex(token)), (2, PAYLOAD), (2, PAYLOAD))),
            (128, lambda token: frame((3, b"\0\0\0\7"), (4, b"\0"), (1, bytes.fromhex(token)), (2, PAYLOAD))),
        ],
    )
    def test_each_status(self, shared, parties, binary, status, make):
        device = away_device(shared)
        binary.send(framed(6, device.token) + make(device.token) + framed(8, device.token))
        assert binary.answer() == (status, 7)
        states = lambda: [line["state"] for line in shared.journal("--device", device.id)]
        eventually(lambda: states().count("received") == 1, what="the journal's line")

    @pytest.mark.parametrize(
        "data",
        [
            b"\3", b"\xff" * 100, b"\x16\3\1\2\0", struct.pack(">BI", 2, 0xFFFFFFFF),
            frame((1, b"x" * 32), (2, PAYLOAD), (3, b"short")), struct.pack(">BI", 2, 3) + b"\1\xff\xff",
        ],
    )
    def test_an_unparsable_frame_is_a_protocol_error_without_identifier(self, binary, data):
        binary.send(data)
        assert binary.answer() == (128, 0)

    def test_a_frame_without_identifier_is_answered_with_identifier_0(self, binary):
        binary.send(framed(None, BAD_TOKEN))
        assert binary.answer() == (8, 0)

    @pytest.mark.parametrize("token", ["", "00", BAD_TOKEN])
    def test_the_simple_command_is_closed_without_an_answer(self, binary, token):
        binary.send(simple(token))
        assert binary.answer() is None

    def test_the_simple_command_with_a_long_payload_is_closed_without_an_answer(self, binary, parties):
        binary.send(simple(parties.token, b" " * 2049))
        assert binary.answer() is None

    def test_a_token_of_another_app_or_of_a_removed_one_is_invalid(self, shared, parties):
        for token in parties.other_token, parties.dead_token:
            with Binary(shared, parties.certificate) as connection:
                connection.send(framed(9, token))
                assert connection.answer() == (8, 9)

    def test_a_certificate_without_a_matching_topic(self, shared):
        with Binary(shared, shared.provider_certificate(f"{TOPIC}.push-type.liveactivity")) as connection:
            connection.send(framed(9, BAD_TOKEN))
            assert connection.answer() == (3, 9)

    def test_the_older_payload_limit_is_a_setting(self, fresh):
        service = fresh().start()
        device = away_device(service)
        service.stop()
        config = service.data.parent / "herald.yaml"
        config.write_text("binary-payload-size: 256\n")
        service.start("--config", str(config))
        certificate = service.provider_certificate()
        with Binary(service, certificate) as connection:
            connection.send(framed(1, device.token, b'{"x":"' + b"y" * 248 + b'"}'))
            connection.send(framed(2, device.token, b'{"x":"' + b"y" * 249 + b'"}'))
            assert connection.answer() == (7, 2)


class TestOrder:
    def test_exactly_the_notifications_before_a_bad_one_are_accepted(self, fresh):
        service = fresh().start()
        device = away_device(service)
        bad = 3200
        data = b"".join(framed(n, BAD_TOKEN if n == bad else device.token) for n in range(10_000))
        with Binary(service, service.provider_certificate()) as connection:
            connection.send(data)
            assert connection.answer() == (8, bad)
        eventually(lambda: accepted(service, TOPIC) == list(range(bad)), what="the lines of those before it")

    def test_data_sent_after_the_error_does_not_destroy_the_answer(self, shared, parties):
        """A client that reads only once it has written everything, much more than any buffer holds."""
        with Binary(shared, parties.certificate, timeout=PATIENCE) as connection:
            connection.send(framed(1, BAD_TOKEN))
            for _ in range(200):
                connection.send(framed(2, BAD_TOKEN, b" " * 2048) * 10)
            assert connection.answer() == (8, 1)

    def test_notifications_before_an_abrupt_end_are_accepted(self, fresh):
        """No answer read, no end of TLS, right after the last byte."""
        service = fresh().start()
        device = away_device(service)
        connection = Binary(service, service.provider_certificate())
        connection.send(b"".join(framed(n, device.token) for n in range(3000)))
        connection.socket.close()
        eventually(lambda: accepted(service, TOPIC) == list(range(3000)))

    def test_a_half_closed_client_still_gets_the_answer(self, shared, parties):
        with Binary(shared, parties.certificate) as connection:
            connection.send(framed(1, parties.token) * 1000 + framed(2, BAD_TOKEN))
            connection.socket.shutdown(socket.SHUT_WR)
            plain = socket.socket(fileno=connection.socket.detach())
            # The answer, encrypted, and close_notify: that TLS ended in order is the other tests' to show.
            data = b""
            plain.settimeout(PATIENCE)
            while part := plain.recv(65536):
                data += part
            plain.close()
            assert data[0] == 23 and len(data) > 6

    def test_a_provider_that_reads_nothing_delays_nobody(self, shared, parties, device):
        with Binary(shared, parties.certificate) as slow, Binary(shared, parties.certificate) as other:
            slow.send(framed(1, BAD_TOKEN))
            other.send(framed(2, device.token))
            assert device.next().payload == PAYLOAD
            assert slow.answer() == (8, 1)


class TestConnectionEnd:
    def test_a_stop_names_the_last_accepted_notification(self, fresh):
        def stop():
            service = fresh().start()
            device = away_device(service)
            certificate = service.provider_certificate()
            with Binary(service, certificate) as used, Binary(service, certificate) as unused, Binary(
                service, certificate
            ) as simple_only:
                used.send(framed(41, device.token) + framed(42, device.token))
                simple_only.send(simple(device.token))
                eventually(lambda: len(accepted(service, TOPIC)) == 3)
                begun = time.monotonic()
                assert service.stop() == 0
                taken = time.monotonic() - begun
                assert used.answer() == (10, 42)
                assert unused.answer() is None
                assert simple_only.answer() is None
                return taken

        # The grace period, after which connections end that do not end by themselves, has ten seconds.
        once_within(8, stop)

    def test_a_stop_under_load_loses_nothing_up_to_the_identifier(self, fresh):
        service = fresh().start()
        device = away_device(service)
        with Binary(service, service.provider_certificate(), timeout=PATIENCE) as connection:
            connection.send(framed(0, device.token))
            eventually(lambda: accepted(service, TOPIC))
            data = b"".join(framed(n, device.token) for n in range(1, 2000))
            connection.send(data)
            assert service.stop() == 0
            status, last = connection.answer()
            assert status == 10
        service.start()
        eventually(lambda: accepted(service, TOPIC) == list(range(last + 1)), what="all up to the identifier, and none behind it")

    @pytest.mark.slow
    def test_half_a_frame_is_timed_out(self, shared, parties, binary):
        binary.send(framed(5, parties.token) + framed(6, parties.token)[:-1])
        # An idle connection would stay for more than an hour.
        assert binary.answer() == (10, 5)

    def test_a_revoked_certificate_ends_the_connection(self, fresh):
        service = fresh().start()

        def revoke():
            certificate = service.provider_certificate()
            with Binary(service, certificate) as connection, Binary(service, certificate) as second:
                assert connection.is_silent()
                entries = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
                (entry,) = [entry for entry in entries if not entry.get("revoked")]
                herald("provider", "revoke", entry["id"], "--data", service.data)
                begun = time.monotonic()
                wait_for_end(connection)
                wait_for_end(second)
                taken = time.monotonic() - begun
            with Binary(service, certificate) as again:
                wait_for_end(again)
            return taken

        # At once, and not when all certificates are looked through, every ten seconds.
        once_within(3, revoke)

    def test_an_expired_certificate_ends_the_connection(self, fresh):
        service = fresh("--clock", "adjustable").start()
        with Binary(service, service.provider_certificate()) as connection:
            assert connection.is_silent()
            advance(service, 400 * 86_400)
            wait_for_end(connection)

    def test_a_certificate_of_the_other_environment_is_refused(self, shared):
        certificate = shared.provider_certificate(environment="sandbox")
        with Binary(shared, certificate) as connection:
            assert connection.answer() is None
        with Binary(shared, certificate, name="sandbox.localhost") as connection:
            assert connection.is_silent()

    def test_a_device_certificate_is_refused(self, shared):
        path, _ = shared.device()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Binary(shared, path).rest()

    @pytest.mark.parametrize("listener", ["binary", "feedback"])
    def test_a_connection_without_certificate_is_closed_cleanly(self, shared, listener):
        with Binary(shared, listener=listener) as connection:
            connection.send(simple(BAD_TOKEN))
            assert connection.rest() == b""


class TestApplesNames:
    def test_each_of_apples_names_selects_its_environment(self, tmp_path):
        data = tmp_path / "data"
        herald("init", "--as-apple", "--data", data)
        service = Service(data).start()
        try:
            device, certificate = away_device(service), service.provider_certificate()
            with Binary(service, certificate, name="gateway.push.apple.com") as production:
                production.send(framed(1, device.token))
                assert production.is_silent()
            with Binary(service, certificate, name="gateway.sandbox.push.apple.com") as sandbox:
                sandbox.send(framed(2, device.token))
                assert sandbox.answer() == (8, 2)
            dead_app(device)
            assert feedback(service, certificate, name="feedback.sandbox.push.apple.com") == []
            ((_, token),) = feedback(service, certificate, name="feedback.push.apple.com")
            assert token == device.token
        finally:
            service.close()


class TestHTTP2:
    """HTTP/2 on these ports is the provider API, as at Apple."""

    @pytest.mark.parametrize("listener", ["binary", "feedback"])
    @pytest.mark.parametrize("alpn", [("h2",), ()], ids=["alpn", "preface"])
    @pytest.mark.parametrize("kind", ["certificate", "key"])
    def test_the_provider_api_is_served_on_these_ports(self, shared, parties, listener, alpn, kind):
        class Elsewhere:
            host, ca, listeners = shared.host, shared.ca, {"api": shared.listeners[listener]}

        credential = {"certificate": parties.certificate} if kind == "certificate" else {"key": parties.key}
        def is_served():
            try:
                with Provider(Elsewhere, alpn=alpn, **credential) as provider:
                    assert provider.push(parties.token).status == 200
                    assert provider.push(BAD_TOKEN).reason == "BadDeviceToken"
                    return True
            except Disconnected:
                # Without ALPN the first bytes say what it is; a client that pauses before them gets the feedback list.
                assert listener == "feedback" and not alpn
                return False

        eventually(is_served, what="a client that does not pause")

    def test_http_2_connections_stop_gracefully(self, fresh):
        service = fresh().start()
        token = away_device(service).token

        class Elsewhere:
            host, ca, listeners = service.host, service.ca, {"api": service.listeners["binary"]}

        with Provider(Elsewhere, certificate=service.provider_certificate()) as provider:
            assert provider.push(token).status == 200
            service.stop()
            provider.wait_for_close()
            assert provider.goaways[-1].additional_data == b'{"reason":"Shutdown"}'


class TestWithOpenSSL:
    def s_client(self, service, certificate, data, listener="binary"):
        command = [
            "openssl", "s_client", "-connect", f"127.0.0.1:{service.listeners[listener]}", "-servername", "localhost",
            "-CAfile", str(service.ca), "-cert", str(certificate), "-key", str(certificate), "-quiet", "-no_ign_eof",
            "-verify_return_error",
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdin.write(data)
        process.stdin.flush()
        try:
            answer = process.stdout.read()
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)
        return answer

    def test_the_error_response_is_exact(self, shared, parties):
        data = framed(0x01020304, parties.other_token)
        assert self.s_client(shared, parties.certificate, data).hex() == "080801020304"

    def test_an_empty_feedback_list_ends_at_once(self, shared, parties):
        certificate = shared.provider_certificate("com.example.nobody")
        assert self.s_client(shared, certificate, b"", listener="feedback") == b""

    def test_the_handshake_is_tls_1_2(self, shared, parties):
        """With TLS 1.3 a client that never reads would have its last bytes destroyed by the tickets it did not read."""
        with Binary(shared, parties.certificate) as connection:
            assert connection.socket.version() == "TLSv1.2"


def test_metrics_count_notifications(fresh):
    import urllib.request

    service = fresh().start()
    device = away_device(service)
    certificate = service.provider_certificate()
    with Binary(service, certificate) as connection:
        connection.send(framed(1, device.token) + framed(2, BAD_TOKEN))
        assert connection.answer() == (8, 2)
    dead_app(device)
    herald("feedback", "--certificate", certificate, "--service", f"localhost:{service.listeners['feedback']}", "--ca", service.ca)
    expected = (
        "herald_binary_connections_total 1", 'herald_binary_notifications_total{status="0"} 1',
        'herald_binary_notifications_total{status="8"} 1', "herald_feedback_connections_total 1", "herald_feedback_tuples_total 1",
    )

    def are_counted():
        url = f"http://127.0.0.1:{service.listeners['console']}/metrics"
        text = urllib.request.urlopen(url, timeout=PATIENCE).read().decode()
        return all(line in text for line in expected)

    eventually(are_counted, what="the counts")


def test_other_topics_reach_other_apps(shared, parties):
    with Binary(shared, shared.provider_certificate(OTHER)) as connection:
        connection.send(framed(1, parties.other_token))
        assert connection.is_silent()
        connection.send(framed(2, parties.token))
        assert connection.answer() == (8, 2)
