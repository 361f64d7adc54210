"""The conventions of HTTP/2 servers, with clients of others: h2, nghttp, curl.

What `test_api_connection.py` shows already (stream limits, PING, HPACK, padding, stopping) is not shown again here.
"""

import contextlib
import json
import subprocess
import time

from h2.settings import SettingCodes
import hpack
import pytest

from parties import assert_accepted, assert_refused, new_id
from provider import HELLO, Answer, Disconnected, Provider, away_device, listening_device
from service import PATIENCE, TOPIC

PAYLOAD = json.dumps(HELLO)


@pytest.fixture(scope="module")
def device(shared):
    with listening_device(shared) as device:
        yield device


class TestSettings:
    def test_the_settings_are_those_of_apns(self, parties):
        with parties.provider() as provider:
            settings = provider.wait_for_settings()
            assert settings[SettingCodes.HEADER_TABLE_SIZE] == 4096
            assert settings[SettingCodes.MAX_CONCURRENT_STREAMS] == 1000
            assert settings[SettingCodes.INITIAL_WINDOW_SIZE] == 65_535
            assert settings[SettingCodes.MAX_FRAME_SIZE] == 16_384
            assert settings[SettingCodes.MAX_HEADER_LIST_SIZE] == 8000

    def test_the_settings_come_before_any_request(self, parties):
        with parties.provider() as provider:
            # `Provider` says its preface and waits; nothing else was sent when these came.
            assert provider.wait_for_settings()

    def test_client_settings_may_change_at_any_time(self, parties):
        with parties.provider() as provider:
            for table in (0, 4096, 65_536, 1):
                provider.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: table})
                provider.flush()
                assert_refused(provider.push("00"), 400, "BadDeviceToken")
                assert_accepted(provider.push(parties.token))


class TestIdleTimeout:
    @pytest.fixture
    def service(self, fresh):
        return fresh("--provider-idle", "5s").start()

    def test_a_silent_connection_is_closed_with_idle_timeout(self, service):
        certificate, begin = service.provider_certificate(), time.monotonic()
        with Provider(service, certificate) as provider:
            provider.wait_for_settings()
            goaway = provider.wait_for_goaway()
            assert (goaway.error_code, goaway.additional_data) == (0, b'{"reason":"IdleTimeout"}')
            assert time.monotonic() - begin >= 5
            provider.wait_for_close()

    def test_a_pinging_connection_is_not_idle(self, service):
        certificate = service.provider_certificate()
        for _ in range(5):
            with Provider(service, certificate) as provider:
                longest, last = 0, time.monotonic()
                with contextlib.suppress(Disconnected):
                    for _ in range(8):
                        provider.ping()
                        time.sleep(1)  # pace: one PING a second
                        longest, last = max(longest, time.monotonic() - last), time.monotonic()
                    provider.ping()
                # On a machine that pauses, it was silent for too long: that shows nothing.
                if max(longest, time.monotonic() - last) < 5:
                    assert provider.goaways == []
                    assert provider.push("00").status == 400
                    return
        pytest.fail("five times there were five seconds between two PINGs")

    def test_a_connection_with_an_open_request_is_not_idle(self, fresh):
        service = fresh("--provider-idle", "5s", "--drill", "latency --latency 9s --for 10m").start()
        device, certificate = away_device(service), service.provider_certificate()
        # Again, if the machine pauses for five seconds before the request is sent.
        for _ in range(5):
            begun, is_early, answer = time.monotonic(), False, None
            with contextlib.suppress(Disconnected), Provider(service, certificate) as provider:
                stream = provider.send(device.token)
                is_early = time.monotonic() - begun < 4
                answer = provider.answer(stream)
            if is_early:
                break
        assert is_early and answer, "the connection ended with an open request"
        assert_accepted(answer)


class TestCertificates:
    def test_a_wrong_certificate_gets_goaway_after_settings(self, parties, fresh):
        """APNs shakes hands, exchanges SETTINGS, and says in GOAWAY what is wrong with the certificate."""
        sandbox = parties.service.provider_certificate(environment="sandbox")
        with Provider(parties.service, sandbox) as provider:
            provider.wait_for_settings()
            goaway = provider.wait_for_goaway()
            assert (goaway.last_stream_id, goaway.error_code) == (0, 0)
            assert goaway.additional_data == b'{"reason":"BadCertificateEnvironment"}'
            provider.wait_for_close()
        with Provider(parties.service, sandbox, name="sandbox.localhost") as provider:
            assert provider.push("00").status == 400

    def test_a_request_with_a_wrong_certificate_is_not_answered(self, parties):
        certificate = parties.service.provider_certificate(environment="sandbox")
        with Provider(parties.service, certificate) as provider:
            stream = provider.send(parties.token)
            assert provider.wait_for_goaway().last_stream_id == 0
            provider.wait_for_close()
            assert provider.answers[stream].status == 0


class TestRequests:
    def test_a_request_without_content_length_is_served(self, parties):
        with parties.provider() as provider:
            assert_accepted(provider.push(parties.token))

    def test_a_request_with_content_length_is_served(self, parties):
        with parties.provider() as provider:
            body = json.dumps(HELLO).encode()
            assert_accepted(provider.push(parties.token, body, content_length=len(body)))

    @pytest.mark.parametrize("length", [1, 10_000])
    def test_a_wrong_content_length_fails_only_its_request(self, parties, length):
        with parties.provider() as provider:
            answer = provider.push(parties.token, b"{\"aps\":{}}", content_length=length)
            assert answer.reset == 1
            assert_accepted(provider.push(parties.token))

    def test_an_expect_header_is_accepted(self, parties):
        """Java's client sends it; the body follows whether it is told to continue or not."""
        with parties.provider() as provider:
            assert_accepted(provider.push(parties.token, expect="100-continue"))

    def test_never_indexed_header_fields_are_accepted(self, parties):
        with parties.provider() as provider:
            id = new_id()
            fields = [
                (b":method", b"POST"), (b":scheme", b"https"), (b":path", f"/3/device/{parties.token}".encode()),
                (b":authority", b"localhost"), (b"apns-topic", TOPIC.encode()), (b"apns-id", id.encode()),
            ]
            stream = provider.h2.get_next_available_stream_id()
            provider.answers[stream] = Answer(stream)
            provider.h2.send_headers(stream, [hpack.NeverIndexedHeaderTuple(*field) for field in fields])
            provider.send_body(stream, b"{}")
            assert_accepted(provider.answer(stream), id)

    def test_unknown_fields_and_frames_are_ignored(self, parties):
        with parties.provider() as provider:
            provider.wait_for_settings()
            provider.socket.sendall(b"\x00\x00\x02\xfa\x00\x00\x00\x00\x00ab")
            assert_accepted(provider.push(parties.token, headers=[("x-unknown", "1"), ("apns-unknown", "2")]))


class TestNghttp:
    @pytest.mark.parametrize(
        "options",
        [
            ["--padding=255"], ["--trailer=x-trailer: 1"], ["--expect-continue"], ["--header-table-size=0"],
            ["--header-table-size=65536", "--encoder-header-table-size=100"], ["--no-content-length"],
            ["--window-bits=1"], ["--max-concurrent-streams=1"], ["--hexdump"], ["--no-dep"],
        ],
        ids=lambda options: " ".join(options),
    )
    def test_nghttp_sends_a_notification_in_every_form(self, shared, parties, device, tmp_path, options):
        body = tmp_path / "payload.json"
        body.write_text(PAYLOAD)
        result = subprocess.run(
            [
                "nghttp", "--verbose", "--no-verify-peer", "--timeout=60", f"--cert={parties.certificate}",
                f"--key={parties.certificate}", f"--data={body}", f"--header=apns-topic: {TOPIC}", *options,
                f"https://127.0.0.1:{shared.listeners['api']}/3/device/{device.token}",
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE, errors="replace",
        )
        assert result.returncode == 0, result.stderr
        assert ":status: 200" in result.stdout
        assert device.next().payload.decode() == PAYLOAD

    def test_endless_header_fields_are_not_read(self, shared, parties, device):
        """nghttp's --continuation adds fields of more than 64 KiB: four times what is read."""
        result = subprocess.run(
            [
                "nghttp", "--verbose", "--no-verify-peer", "--timeout=60", "--continuation", f"--cert={parties.certificate}",
                f"--key={parties.certificate}", f"https://127.0.0.1:{shared.listeners['api']}/3/device/{device.token}",
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE, errors="replace",
        )
        assert "error_code=ENHANCE_YOUR_CALM(0x0b)" in result.stdout

    def test_a_hundred_copies_of_a_request_are_served_on_one_connection(self, shared, parties, tmp_path):
        body = tmp_path / "payload.json"
        body.write_text(PAYLOAD)
        result = subprocess.run(
            [
                "nghttp", "--verbose", "--no-verify-peer", "--timeout=60", f"--cert={parties.certificate}", "--multiply=100",
                f"--key={parties.certificate}", f"--data={body}", f"--header=apns-topic: {TOPIC}",
                f"https://127.0.0.1:{shared.listeners['api']}/3/device/{parties.token}",
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE,
        )
        assert result.stdout.count(":status: 200") == 100


class TestCurl:
    def test_an_expect_header_and_an_unknown_length(self, shared, parties, device):
        result = subprocess.run(
            [
                "curl", "--silent", "--show-error", "--max-time", "60", "--cacert", str(shared.ca), "--http2", "--cert",
                str(parties.certificate), "--header", "Expect: 100-continue", "--header", "Content-Length:", "--data", "@-",
                "--header", f"apns-topic: {TOPIC}", "--write-out", "%{http_code}",
                f"https://localhost:{shared.listeners['api']}/3/device/{device.token}",
            ],
            input=PAYLOAD, capture_output=True, text=True, timeout=2 * PATIENCE,
        )
        assert (result.returncode, result.stdout) == (0, "200"), result.stderr
        assert device.next().payload.decode() == PAYLOAD


class TestStopping:
    def test_requests_during_a_stop_get_shutdown(self, fresh):
        # A request that waits for its body keeps the connection open for some seconds while the service stops. A machine that
        # pauses for so long is given another service.
        if not any(self.is_refused_during_a_stop(fresh().start()) for _ in range(5)):
            pytest.fail("the connection ended although a request was in hand")

    @staticmethod
    def is_refused_during_a_stop(service):
        device = away_device(service)
        with Provider(service, service.provider_certificate()) as provider:
            assert_accepted(provider.push(device.token))
            half = provider.send(device.token, b'{"aps":', end=False)
            provider.ping()
            service.process.send_signal(15)
            statuses = []
            try:
                while not statuses or statuses[-1].status == 200:
                    statuses.append(provider.push(device.token))
                assert_refused(statuses[-1], 503, "Shutdown")
                assert statuses[-1].header("retry-after") == "10"
                provider.send_body(half, b"{}}")
                answer = provider.answer(half)
                assert answer.status in (200, 503) or answer.reset == 8
            except Disconnected:
                return False
            assert provider.wait_for_goaway().additional_data == b'{"reason":"Shutdown"}'
            provider.wait_for_close()
        assert service.process.wait(timeout=PATIENCE) == 0
        return True
