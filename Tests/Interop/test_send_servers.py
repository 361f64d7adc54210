"""`herald send`, and so the client library, against other servers: nghttpd, and scripted failures on the `h2` package."""

import contextlib
import socket
import subprocess

import h2.errors
import h2.settings
import pytest

from commands import one_line
from scripted_service import ID, Scripted, accepts, resets
from service import PATIENCE, TOPIC, eventually, free_port, herald

TOKEN = "0a" * 32


def sends_goaway_first(connection):
    """Sends a GOAWAY that excludes the request it has read, and closes."""
    connection.request()
    connection.h2.close_connection(last_stream_id=0)
    connection.flush()


def refuses_the_credential(connection):
    connection.request()
    connection.h2.close_connection(last_stream_id=0, additional_data=b'{"reason":"BadCertificateEnvironment"}')
    connection.flush()


def refuses_the_stream_once(connection):
    stream, _ = connection.request()
    connection.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
    connection.flush()
    accepts(connection)


def closes(connection):
    connection.request()


def send(port, trust, *options, token=TOKEN):
    ca, _, client = trust
    return herald(
        "send", token, "--service", f"localhost:{port}", "--ca", ca, "--topic", TOPIC, "--certificate", client,
        "--alert", "hi", *options, check=False,
    )


@pytest.mark.parametrize("script", [accepts, refuses_the_stream_once])
def test_a_notification_is_accepted(trust, script):
    with Scripted(trust[1], [script]) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr
    assert {fields[":path"] for fields in service.seen} == {f"/3/device/{TOKEN}"}
    assert len({fields[ID] for fields in service.seen}) == 1


@pytest.mark.parametrize("length", [1, 54, 100])
def test_a_token_of_another_length_is_sent_and_is_bad_at_a_herald(trust, shared, provider_pem, length):
    token = "0A" * length
    with Scripted(trust[1], [accepts]) as service:
        result = send(service.port, trust, token=token)
        assert result.returncode == 0, result.stderr
    assert [fields[":path"] for fields in service.seen] == [f"/3/device/{token.lower()}"]
    said = one_line(send(shared.listeners["api"], (shared.ca, None, provider_pem), token=token))
    assert "400 BadDeviceToken" in said and token.lower() not in said


def test_requests_after_goaways_last_stream_move_to_another_connection(trust):
    with Scripted(trust[1], [sends_goaway_first, accepts]) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr
    assert len(service.seen) == 2
    assert service.seen[0][ID] == service.seen[1][ID]


@pytest.mark.parametrize("script", [closes, resets(1)], ids=["closed", "reset"])
def test_a_request_that_may_have_arrived_is_not_sent_again(trust, script):
    with Scripted(trust[1], [script]) as service:
        assert "closed the connection" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_the_reason_of_a_goaway_is_reported(trust):
    with Scripted(trust[1], [refuses_the_credential]) as service:
        assert "BadCertificateEnvironment" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_a_late_stream_limit_is_obeyed(trust):
    def opens_late(connection):
        connection.h2.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1})
        connection.flush()
        accepts(connection)

    with Scripted(trust[1], [opens_late], {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 0}) as service:
        result = send(service.port, trust)
        assert result.returncode == 0, result.stderr


def test_a_refused_certificate_is_reported(trust, shared):
    """With TLS 1.3 its alert comes after the handshake."""
    said = one_line(send(shared.listeners["api"], (shared.ca, *trust[1:])))
    assert said.endswith("refuses the provider's certificate: the peer does not trust its authority"), said


def test_a_port_without_tls_and_an_unknown_name_are_reported(trust, shared):
    assert "does not speak TLS" in one_line(send(shared.listeners["console"], trust))
    result = herald("send", TOKEN, "--service", "nowhere.invalid:2197", "--ca", trust[0], "--topic", TOPIC, "--certificate",
                    trust[2], "--alert", "hi", check=False)
    assert "the name nowhere.invalid does not resolve" in one_line(result)


def test_a_failure_of_a_proxy_is_no_refusal(trust):
    """A proxy that gave up may have passed the request on."""
    def fails(connection):
        stream, _ = connection.request()
        connection.h2.send_headers(stream, [(":status", "502")])
        connection.h2.send_data(stream, b"<html>Bad Gateway</html>", end_stream=True)
        connection.flush()

    with Scripted(trust[1], [fails]) as service:
        assert "status 502 without a reason" in one_line(send(service.port, trust))
    assert len(service.seen) == 1


def test_another_kind_of_server_is_reported(trust, tmp_path):
    """nghttpd, which answers 404."""
    port = free_port()
    server = subprocess.Popen(["nghttpd", "-d", tmp_path, str(port), trust[1], trust[1]])
    try:
        def listens():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return True
        assert eventually(listens)
        assert "not from a push service" in one_line(send(port, trust))
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE)
