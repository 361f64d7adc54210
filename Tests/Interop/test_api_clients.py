"""Unmodified clients of others: curl, nghttp, h2load; TLS 1.2 and 1.3, with and without ALPN."""

import json
import re
import socket
import ssl
import subprocess

import pytest

from parties import LOWER_UUID, assert_accepted, new_id
from provider import HELLO, listening_device, provider_token
from refusals import refused, told
from service import PATIENCE, TOPIC, eventually

PAYLOAD = json.dumps(HELLO)


@pytest.fixture(scope="module")
def listening(shared):
    with listening_device(shared) as device:
        yield device


def curl(service, token, *options, payload=PAYLOAD):
    """curl as Apple's page shows it: (exit code, HTTP version, status, headers, body)."""
    result = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--max-time", "60", "--cacert", str(service.ca), "--include",
            "--header", f"apns-topic: {TOPIC}", "--header", "apns-push-type: alert", "--data", payload,
            "--write-out", "\n%{http_version} %{http_code}", *map(str, options),
            f"https://127.0.0.1:{service.listeners['api']}/3/device/{token}",
        ],
        capture_output=True, text=True, timeout=2 * PATIENCE,
    )
    text, _, summary = result.stdout.rpartition("\n")
    head, _, body = text.replace("\r", "").partition("\n\n")
    version, _, status = summary.partition(" ")
    return result.returncode, version, status, head, body


class TestCurl:
    def test_a_certificate_sends_a_notification(self, shared, parties, listening):
        code, version, status, head, body = curl(shared, listening.token, "--http2", "--cert", parties.certificate)
        assert (code, version, status, body) == (0, "2", "200", "")
        assert LOWER_UUID.fullmatch(re.search(r"^apns-id: (.*)$", head, re.M)[1])
        assert listening.next().payload.decode() == PAYLOAD

    def test_a_provider_token_sends_a_notification(self, shared, parties, listening):
        id = new_id()
        code, version, status, head, body = curl(
            shared, listening.token, "--http2", "--header", f"authorization: bearer {provider_token(parties.key, der=True)}",
            "--header", f"apns-id: {id}",
        )
        assert (code, version, status, body) == (0, "2", "200", "")
        assert f"\napns-id: {id}\n" in head + "\n"
        assert listening.next().id == id

    def test_a_refusal_is_shown(self, shared, parties):
        code, version, status, head, body = curl(shared, "00", "--http2", "--cert", parties.certificate)
        assert (code, version, status, body) == (0, "2", "400", '{"reason":"BadDeviceToken"}')
        assert "\ncontent-type: application/json" in head

    def test_two_requests_share_a_connection(self, shared, parties, listening):
        result = subprocess.run(
            [
                "curl", "--silent", "--http2", "--cacert", str(shared.ca), "--cert", str(parties.certificate),
                "--data", PAYLOAD, "--write-out", "%{http_code} %{num_connects}\n",
                *[f"https://127.0.0.1:{shared.listeners['api']}/3/device/{listening.token}"] * 2,
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE,
        )
        assert result.stdout == "200 1\n200 0\n"

    @pytest.mark.parametrize("option", ["--http1.1", "--http1.0"])
    def test_http_1_is_refused_cleanly(self, shared, parties, option):
        code, _, status, _, _ = curl(shared, parties.token, option, "--cert", parties.certificate)
        # Either a failed connection or an answer that says no; never a success, never silence until the time-out.
        assert status != "200"
        assert code not in (0, 28) or status.startswith(("4", "5"))

    @pytest.mark.parametrize("port", ["api", "binary", "feedback", "device", "activation"])
    def test_who_speaks_without_tls_gets_a_plain_answer(self, shared, port):
        place = f"http://localhost:{shared.listeners[port]}/"
        said = subprocess.run(["curl", "--silent", "--include", place], capture_output=True, text=True, timeout=PATIENCE).stdout
        assert said.startswith("HTTP/1.1 400 ") and said.endswith("over TLS, and your client spoke without TLS\n"), said
        # A long body comes while the answer is on its way.
        upload = ["curl", "--silent", "--data-binary", "@-", place]
        said = subprocess.run(upload, input="x" * 300_000, capture_output=True, text=True, timeout=PATIENCE).stdout
        assert said.endswith("your client spoke without TLS\n")
        prior = ["curl", "--silent", "--show-error", "--http2-prior-knowledge", place]
        assert subprocess.run(prior, capture_output=True, text=True, timeout=PATIENCE).returncode not in (0, 28)
        with socket.create_connection(("localhost", shared.listeners[port]), timeout=PATIENCE) as person:
            person.sendall(b"hello?\r\n")
            assert person.makefile().readline().startswith("this port (")

    @pytest.mark.parametrize("port", ["api", "binary", "device"])
    @pytest.mark.parametrize("options", [[], ["--no-alpn"], ["--head"]], ids=" ".join)
    def test_http_1_over_tls_gets_a_plain_answer(self, shared, parties, port, options):
        identity = shared.device()[0] if port == "device" else parties.certificate
        command = ["curl", "--silent", "--include", "--http1.1", "--cacert", shared.ca, "--cert", identity, *options]
        result = subprocess.run(
            [*map(str, command), f"https://localhost:{shared.listeners[port]}/"], capture_output=True, text=True, timeout=PATIENCE
        )
        assert result.returncode == 0 and result.stdout.startswith("HTTP/1.1 400 "), result.stdout + result.stderr
        assert options == ["--head"] or result.stdout.endswith(" only, and your client spoke HTTP/1.1\n")

    def test_http_1_without_alpn_is_refused_cleanly(self, shared, parties):
        code, _, status, _, _ = curl(shared, parties.token, "--no-alpn", "--cert", parties.certificate)
        assert status != "200"
        assert code not in (0, 28) or status.startswith(("4", "5"))

    def test_http_1_is_logged_and_counted(self, fresh):
        service = fresh("--log-level", "info").start()
        url = f"https://localhost:{service.listeners['api']}/3/device/00"
        subprocess.run(["curl", "--silent", "--http1.1", "--cacert", str(service.ca), url], timeout=PATIENCE)
        eventually(lambda: refused(service, "provider API", "http1") == 1, what="the count")
        (line,) = told(service, 1)
        assert "HTTP/2 only" in line

    def test_a_service_with_a_foreign_name_is_rejected_by_the_client(self, shared):
        """The name in the server's certificate is checked by the client."""
        result = subprocess.run(
            [
                "curl", "--silent", "--http2", "--cacert", str(shared.ca), "--data", PAYLOAD,
                "--connect-to", f"::127.0.0.1:{shared.listeners['api']}", "https://push.example.org/3/device/00",
            ],
            capture_output=True, timeout=PATIENCE,
        )
        assert result.returncode == 60


class TestHandshakes:
    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    @pytest.mark.parametrize("alpn", [("h2",), (), ("http/1.1", "h2"), ("spdy/3",)], ids=str)
    @pytest.mark.parametrize("kind", ["certificate", "key"])
    def test_http_2_is_spoken_whatever_alpn_negotiated(self, parties, version, alpn, kind):
        with parties.provider(kind, version=version, alpn=alpn) as provider:
            assert provider.socket.version() == {771: "TLSv1.2", 772: "TLSv1.3"}[version]
            assert provider.socket.selected_alpn_protocol() == ("h2" if "h2" in alpn else None)
            assert_accepted(provider.push(parties.token))

    def test_older_versions_of_tls_are_refused(self, shared):
        result = subprocess.run(
            [
                "openssl", "s_client", "-connect", f"127.0.0.1:{shared.listeners['api']}", "-tls1_1",
                "-cipher", "DEFAULT@SECLEVEL=0",
            ],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
        )
        assert result.returncode != 0
        assert "Cipher is (NONE)" in result.stdout

    def test_a_request_with_host_in_place_of_authority_is_served(self, parties):
        with parties.provider() as provider:
            assert_accepted(provider.push(parties.token, authority=False, headers=[("host", "api.push.apple.com")]))
            assert_accepted(provider.push(parties.token, headers=[("host", "api.push.apple.com")]))

    def test_a_request_without_authority_and_host_is_a_stream_error(self, parties):
        with parties.provider() as provider:
            answer = provider.push(parties.token, authority=False)
            assert (answer.reset, answer.status) == (1, 0)
            assert_accepted(provider.push(parties.token))


class TestNghttp2:
    def test_nghttp_sends_a_notification(self, shared, parties, listening, tmp_path):
        body = tmp_path / "payload.json"
        body.write_text(PAYLOAD)
        result = subprocess.run(
            [
                "nghttp", "--verbose", "--no-verify-peer", "--timeout=60", f"--cert={parties.certificate}",
                f"--key={parties.certificate}", f"--data={body}", f"--header=apns-topic: {TOPIC}",
                f"https://127.0.0.1:{shared.listeners['api']}/3/device/{listening.token}",
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        assert ":status: 200" in result.stdout
        assert listening.next().payload.decode() == PAYLOAD

    def test_h2load_gets_a_success_for_every_request(self, shared, parties, tmp_path):
        body = tmp_path / "payload.json"
        body.write_text(PAYLOAD)
        result = subprocess.run(
            [
                "h2load", "--requests=1000", "--clients=4", "--max-concurrent-streams=50", f"--data={body}",
                f"--header=apns-topic: {TOPIC}", f"--header=authorization: bearer {provider_token(parties.key)}",
                f"https://127.0.0.1:{shared.listeners['api']}/3/device/{parties.token}",
            ],
            capture_output=True, text=True, timeout=2 * PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        assert "1000 succeeded, 0 failed, 0 errored, 0 timeout" in result.stdout
        assert "status codes: 1000 2xx" in result.stdout
