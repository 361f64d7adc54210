"""The feedback service: one test for each statement of the documents, with bytes read by hand and with the command."""

import concurrent.futures
import json
import os
import re
import socket
import struct
import subprocess
import time
import urllib.request

import pytest
from cryptography import x509

from binary import Binary, feedback, framed, wait_for_end
from parties import OTHER, dead_app, remove_app
from provider import Provider, away_device, tcp_rows
from service import PATIENCE, TOPIC, eventually, herald, once_within


@pytest.fixture
def service(fresh):
    return fresh().start()


@pytest.fixture
def certificate(service):
    return service.provider_certificate()


def dead_device(service, *topics):
    """A device that has removed all its apps, and the seconds between which notifications found them gone."""
    device = away_device(service, *topics)
    certificate = service.provider_certificate(*device.topics)
    times = [dead_app(device, topic, certificate) for topic in device.topics]
    return device, times[0][0] // 1000, times[-1][1] // 1000


def tokens(tuples):
    return [token for _, token in tuples]


def command(service, certificate, *options, **others):
    return herald(
        "feedback", "--certificate", certificate, "--service", f"localhost:{service.listeners['feedback']}", "--ca",
        service.ca, *options, **others,
    )


class TestList:
    def test_the_list_comes_at_once_and_ends(self, service, certificate):
        def taken():
            device, before, after = dead_device(service)
            begun = time.monotonic()
            found = feedback(service, certificate)
            # Herald sends an entry once more if it does not know yet that the reader had it all.
            (moment,) = [moment for moment, token in found if token == device.token]
            assert before <= moment <= after
            return time.monotonic() - begun

        # The service waits five seconds for a client that says something, and half a minute for other things.
        once_within(4, taken)

    def test_a_token_is_listed_from_the_first_notification_on_that_finds_the_app_gone(self, service, certificate):
        """The service of APNs reports notifications that it could not deliver, not removals."""
        device = away_device(service)
        remove_app(device)
        assert feedback(service, certificate) == []
        with Provider(service, certificate) as provider:
            answers = [provider.push(device.token) for _ in range(3)]
            assert {(answer.status, answer.reason) for answer in answers} == {(410, "Unregistered")}
            # A 410 names the removal.
            assert len({answer.timestamp for answer in answers}) == 1
            ((moment, token),) = feedback(service, certificate)
            assert token == device.token and moment >= answers[0].timestamp // 1000
            eventually(lambda: feedback(service, certificate) == [], what="an empty list")
            # A provider that goes on is told again.
            provider.push(device.token)
            assert tokens(feedback(service, certificate)) == [device.token]

    def test_a_notification_on_the_binary_interface_finds_the_app_gone(self, service, certificate):
        device = away_device(service)
        remove_app(device)
        with Binary(service, certificate) as gateway:
            gateway.send(framed(7, device.token))
            assert gateway.answer() == (8, 7)
        assert tokens(feedback(service, certificate)) == [device.token]

    def test_an_empty_list_ends_at_once(self, service, certificate):
        assert feedback(service, certificate) == []

    def test_reading_clears_the_list(self, service, certificate):
        first, _, _ = dead_device(service)
        assert tokens(feedback(service, certificate)) == [first.token]
        eventually(lambda: feedback(service, certificate) == [])
        second, _, _ = dead_device(service)
        assert tokens(feedback(service, certificate)) == [second.token]

    def test_the_list_survives_a_crash_until_it_is_read(self, service, certificate):
        device, _, _ = dead_device(service)
        # Whatever the service stored before this answer is durable.
        with Provider(service, certificate) as provider:
            assert provider.push(away_device(service).token).status == 200
        service.kill()
        service.start()
        assert tokens(feedback(service, certificate)) == [device.token]

    def test_an_absent_device_is_not_listed(self, service, certificate):
        away_device(service)
        assert feedback(service, certificate) == []

    def test_a_token_registered_again_is_not_listed(self, service, certificate):
        device, _, _ = dead_device(service)
        with device.start():
            assert feedback(service, certificate) == []

    def test_other_topics_are_not_listed(self, service, certificate):
        device, _, _ = dead_device(service, TOPIC, OTHER)
        assert tokens(feedback(service, certificate)) == [device.tokens[TOPIC]]
        assert tokens(feedback(service, service.provider_certificate(OTHER))) == [device.tokens[OTHER]]

    def test_a_bundle_certificate_covers_suffixed_topics_and_not_the_reverse(self, service):
        device, _, _ = dead_device(service, TOPIC, f"{TOPIC}.voip")
        voip = service.provider_certificate(f"{TOPIC}.voip")
        assert tokens(feedback(service, voip)) == [device.tokens[f"{TOPIC}.voip"]]
        # It is forgotten when its reader has confirmed it.
        eventually(lambda: feedback(service, voip) == [], what="an empty list")
        again, _, _ = dead_device(service, TOPIC, f"{TOPIC}.voip")
        found = tokens(feedback(service, service.provider_certificate(TOPIC)))
        assert sorted(found) == sorted([device.tokens[TOPIC], *again.tokens.values()])

    def test_the_environments_have_separate_lists(self, service, certificate):
        device, _, _ = dead_device(service)
        assert feedback(service, certificate, name="sandbox.localhost") == []
        assert tokens(feedback(service, certificate)) == [device.token]

    def test_two_concurrent_readers_both_get_the_list(self, service, certificate):
        dead = {dead_device(service)[0].token for _ in range(3)}
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            lists = list(pool.map(lambda _: set(tokens(feedback(service, certificate))), range(4)))
        assert all(found in (dead, set()) for found in lists)
        assert dead in lists
        eventually(lambda: feedback(service, certificate) == [])

    def test_a_long_list_is_split_over_connections(self, fresh):
        service = fresh()
        config = service.data.parent / "herald.yaml"
        config.write_text("feedback-size: 2\n")
        service.start("--config", str(config))
        certificate = service.provider_certificate()
        dead = [dead_device(service)[0].token for _ in range(3)]
        assert tokens(feedback(service, certificate)) == dead[:2]
        eventually(lambda: tokens(feedback(service, certificate)) == dead[2:])


class TestReader:
    def test_a_reader_that_ends_without_reading_gets_the_list_again(self, service, certificate):
        device, _, _ = dead_device(service)
        for _ in range(3):
            reader = Binary(service, certificate, listener="feedback")
            # Wait until all of it is there, and read none of it.
            wait_until_written(service, reader)
            reader.socket.close()
        assert tokens(feedback(service, certificate)) == [device.token]

    def test_a_reader_that_resets_gets_the_list_again(self, service, certificate):
        device, _, _ = dead_device(service)
        reader = Binary(service, certificate, listener="feedback")
        port = reader.socket.getsockname()[1]
        reader.reset()
        eventually(lambda: not is_held(service, port), what="the end of the connection")
        assert tokens(feedback(service, certificate)) == [device.token]
        assert confirmed(service) == 1

    def test_a_reader_that_closes_without_reading_gets_the_list_again(self, service, certificate):
        """close_notify first, then an end of TCP with the list unread."""
        device, _, _ = dead_device(service)
        reader = Binary(service, certificate, listener="feedback")
        port = wait_until_written(service, reader)
        outgoing = close_notify(reader.socket)
        outgoing.close()
        eventually(lambda: not is_held(service, port), what="the end of the connection")
        assert tokens(feedback(service, certificate)) == [device.token]
        assert confirmed(service) == 1

    def test_a_killed_reader_gets_the_list_again(self, service, certificate):
        device, _, _ = dead_device(service)
        openssl = subprocess.Popen(
            [
                "openssl", "s_client", "-connect", f"127.0.0.1:{service.listeners['feedback']}", "-servername", "localhost",
                "-cert", str(certificate), "-key", str(certificate), "-quiet",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        openssl.kill()
        openssl.wait(timeout=PATIENCE)
        openssl.stdin.close()
        assert tokens(feedback(service, certificate)) == [device.token]

    def test_data_from_the_reader_is_ignored(self, service, certificate):
        device, _, _ = dead_device(service)
        with Binary(service, certificate, listener="feedback") as reader:
            reader.send(b"\0\1\2\3")
            assert reader.rest()[6:].hex() == device.token

    def test_a_revoked_certificate_does_not_get_an_empty_list(self, service, certificate):
        device, _, _ = dead_device(service)
        listed = json.loads(herald("provider", "list", "--data", service.data, "--json").stdout)
        # The device's notifications were sent with another one.
        serial = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number
        (id,) = [entry["id"] for entry in listed if entry.get("serial") and int(entry["serial"], 16) == serial]
        herald("provider", "revoke", id, "--data", service.data)
        reader = Binary(service, certificate, listener="feedback")
        with pytest.raises((OSError, ConnectionError)):
            reader.rest()
        result = command(service, certificate, check=False)
        assert result.returncode == 1
        assert "it refused the certificate" in result.stderr
        assert tokens(feedback(service, service.provider_certificate())) == [device.token]

    @pytest.mark.slow
    def test_a_reader_that_reads_nothing_is_closed_and_gets_the_list_again(self, service, certificate):
        device, _, _ = dead_device(service)
        with Binary(service, certificate, listener="feedback", timeout=PATIENCE) as reader:
            plain = socket.socket(fileno=reader.socket.detach())
            port = plain.getsockname()[1]
            assert is_held(service, port)
            eventually(lambda: not is_held(service, port), timeout=2 * PATIENCE, what="the end of the service's patience")
            plain.close()
        assert tokens(feedback(service, certificate)) == [device.token]


class TestCommand:
    def test_the_command_prints_a_line_for_each_token(self, service, certificate):
        device, before, _ = dead_device(service)
        result = command(service, certificate)
        (line,) = result.stdout.splitlines()
        when, token = line.split()
        assert token == device.token
        assert when[:10] == time.strftime("%Y-%m-%d", time.gmtime(before))
        # A list is forgotten when its reader has confirmed it.
        eventually(lambda: command(service, certificate).stdout == "", what="an empty list")

    def test_the_command_prints_json(self, service, certificate):
        device, _, _ = dead_device(service)
        (entry,) = json.loads(command(service, certificate, "--json").stdout)
        assert entry["token"] == device.token
        eventually(lambda: json.loads(command(service, certificate, "--json").stdout) == [], what="an empty list")

    def test_options_may_come_from_a_file_or_the_environment(self, service, certificate, tmp_path):
        device, _, _ = dead_device(service)
        file = tmp_path / "clients.yaml"
        file.write_text(f"certificate: {certificate}\nservice: localhost:{service.listeners['feedback']}\nca: {service.ca}\n")
        assert device.token in herald("feedback", "--config", file, cwd=tmp_path).stdout
        # The service that runs in the folder that the environment names: its port and its authority.
        variables = {"HERALD_DATA": str(service.data), "HERALD_CERTIFICATE": str(certificate)}
        assert herald("feedback", env=os.environ | variables, cwd=tmp_path).returncode == 0
        assert "--certificate" in herald("feedback", check=False, cwd=tmp_path).stderr

    def test_the_command_reads_any_feedback_service(self, service, certificate, tmp_path):
        """Not only Herald's: `openssl s_server` sends tuples of two lengths."""
        data = struct.pack(">IH", 1_700_000_000, 32) + b"\1" * 32 + struct.pack(">IH", 1_700_000_001, 80) + b"\2" * 80
        assert serve_once(service, data, certificate).splitlines() == [
            f"2023-11-14T22:13:20.000Z  {'01' * 32}", f"2023-11-14T22:13:21.000Z  {'02' * 80}",
        ]

    def test_wrong_usage_and_unreachable_services_are_reported(self, service, certificate, tmp_path):
        assert herald("feedback", check=False).returncode == 64
        missing = herald("feedback", "--certificate", tmp_path / "none.pem", check=False)
        assert missing.returncode == 1 and "none.pem" in missing.stderr
        with socket.socket() as unused:
            # Bound, so that nobody else takes it, and without listening.
            unused.bind(("127.0.0.1", 0))
            place = f"localhost:{unused.getsockname()[1]}"
            away = herald("feedback", "--certificate", certificate, "--service", place, "--ca", service.ca, check=False)
        assert away.returncode == 1 and "cannot reach" in away.stderr
        untrusted = herald(
            "feedback", "--certificate", certificate, "--service", f"localhost:{service.listeners['feedback']}",
            check=False, env={"SSL_CERT_FILE": "/dev/null", "HOME": str(tmp_path)}, cwd=tmp_path,
        )
        assert untrusted.returncode == 1 and "not signed by an authority that is trusted" in untrusted.stderr
        devices = herald(
            "feedback", "--certificate", certificate, "--service", f"localhost:{service.listeners['device']}", "--ca",
            service.ca, check=False,
        )
        assert devices.returncode == 1


def test_a_stop_does_not_wait_for_a_hanging_reader(service, certificate):
    device, _, _ = dead_device(service)

    def stop():
        with Binary(service, certificate, listener="feedback") as reader:
            begun = time.monotonic()
            assert service.stop() == 0
            taken = time.monotonic() - begun
            wait_for_end(reader)
        service.start()
        return taken

    # A reader has half a minute to confirm the list, and the grace period has ten seconds.
    once_within(8, stop)
    assert tokens(feedback(service, certificate)) == [device.token]


def wait_until_written(service, reader):
    """Waits until the service has written the whole list and its end, all unread; returns the reader's port."""
    port = reader.socket.getsockname()[1]

    def is_written():
        # FIN_WAIT1 and FIN_WAIT2: the service has closed its direction.
        rows = [state for local, remote, state, _, _ in tcp_rows(service.pid) if (local, remote) == (service.listeners["feedback"], port)]
        return rows and set(rows) <= {"04", "05"}

    eventually(is_written, what="the end of the list")
    return port


def confirmed(service):
    """How many entries readers have confirmed, once there is one."""
    url = f"http://127.0.0.1:{service.listeners['console']}/metrics"

    def count():
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return int(re.search(r"^herald_feedback_tuples_total (\d+)", answer.read().decode(), re.M)[1])

    return eventually(count, what="a confirmed entry")


def close_notify(connection):
    """Sends the end of TLS without reading what lies unread, and returns the bare socket."""
    import contextlib
    import ssl

    connection.setblocking(False)
    with contextlib.suppress(ssl.SSLError, OSError, ValueError):
        connection.unwrap()
    return socket.socket(fileno=connection.detach())


def is_held(service, port):
    """Whether the service still has the socket of a reader's connection."""
    return any(
        local == service.listeners["feedback"] and remote == port and inode != "0"
        for local, remote, _, inode, _ in tcp_rows(service.pid)
    )


def serve_once(service, data, certificate):
    """The command's output for a service that sends these bytes."""
    import ssl
    import threading

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_pem = service.data / "trust" / "server.pem"
    context.load_cert_chain(str(server_pem))
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        plain, _ = listener.accept()
        with context.wrap_socket(plain, server_side=True) as connection:
            connection.sendall(data)
            connection.unwrap()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    place = f"localhost:{listener.getsockname()[1]}"
    result = herald("feedback", "--certificate", certificate, "--service", place, "--ca", service.ca)
    thread.join(timeout=PATIENCE)
    listener.close()
    return result.stdout
