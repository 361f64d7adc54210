"""Clients of the binary interface, written for Apple's: pushjack, and PyAPNs (as apns3).

Both call `ssl.wrap_socket`, which Python has dropped since; a few lines put it back as it was: no verification, no name.
"""

import importlib
import ssl
import threading
import time

import pytest

from binary import BAD_TOKEN, accepted
from parties import dead_app
from provider import away_device, listening_device
from service import PATIENCE, TOPIC, eventually


def wrap_socket(plain, keyfile=None, certfile=None, do_handshake_on_connect=True, **_):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(certfile, keyfile)
    return context.wrap_socket(plain, do_handshake_on_connect=do_handshake_on_connect)


@pytest.fixture(autouse=True)
def old_python(monkeypatch):
    monkeypatch.setattr(ssl, "wrap_socket", wrap_socket, raising=False)


@pytest.fixture
def service(fresh):
    return fresh().start()


class TestPushjack:
    @pytest.fixture
    def client(self, service):
        pushjack = importlib.import_module("pushjack")
        client = pushjack.APNSClient(certificate=str(service.provider_certificate()), default_error_timeout=5)
        client.host = client.feedback_host = "127.0.0.1"
        client.port, client.feedback_port = service.listeners["binary"], service.listeners["feedback"]
        yield client
        client.close()

    def test_a_batch_is_resumed_after_each_bad_token(self, service, client):
        with listening_device(service) as device:
            # From then on they go straight to the device: before, one that is stored would replace the one before it.
            assert not client.send([device.token], "first").errors
            assert device.next().json["aps"] == {"alert": "first"}
            answer = client.send(
                [device.token, BAD_TOKEN, device.token, device.token, BAD_TOKEN], "hello", extra={"k": "v"},
                error_timeout=PATIENCE,
            )
            assert [(error.code, error.identifier) for error in answer.errors] == [(8, 1), (8, 4)]
            for _ in range(3):
                assert device.next().json == {"aps": {"alert": "hello"}, "k": "v"}
        eventually(lambda: accepted(service, TOPIC) == [0, 0, 2, 3], what="the journal's lines")

    def test_a_batch_of_thousands(self, service, client):
        device = away_device(service)
        ids = [device.token] * 2500
        # The last one too: only a second error ends the wait for it before its time.
        ids[1200] = ids[2499] = BAD_TOKEN
        answer = client.send(ids, "hello", batch_size=500, error_timeout=PATIENCE)
        assert [(error.code, error.identifier) for error in answer.errors] == [(8, 1200), (8, 2499)]
        eventually(lambda: accepted(service, TOPIC) == [n for n in range(2499) if n != 1200])

    def test_low_priority_and_expiration(self, service, client):
        with listening_device(service) as device:
            assert not client.send(device.token, "hello", low_priority=True, expiration=int(time.time()) + 1000).errors
            message = device.next()
            assert message.property("apns-priority") == "5"
            assert 700 <= message.expiry <= 1000

    def test_the_feedback_list_is_read(self, service, client):
        device = away_device(service)
        dead_app(device)
        (expired,) = client.get_expired_tokens()
        assert expired.token == device.token
        eventually(lambda: client.get_expired_tokens() == [])


class TestPyAPNs:
    def connect(self, service, **options):
        apns3 = importlib.import_module("apns3")
        # The module has taken the function by name when it was imported.
        apns3.wrap_socket = wrap_socket
        certificate = str(service.provider_certificate())
        apns = apns3.APNs(cert_file=certificate, key_file=certificate, **options)
        for connection, listener in (apns.gateway_server, "binary"), (apns.feedback_server, "feedback"):
            connection.server, connection.port = "127.0.0.1", service.listeners[listener]
        return apns3, apns

    def test_the_simple_command(self, service):
        apns3, apns = self.connect(service)
        with listening_device(service) as device:
            apns.gateway_server.send_notification(device.token, apns3.Payload(alert="hello", badge=1))
            assert device.next().json == {"aps": {"alert": "hello", "badge": 1}}

    def test_a_frame_of_several(self, service):
        apns3, apns = self.connect(service)
        with listening_device(service) as device:
            # From then on they go straight to the device.
            apns.gateway_server.send_notification(device.token, apns3.Payload(alert="first"))
            device.next()
            frame = apns3.Frame()
            for n in range(5):
                frame.add_item(device.token, apns3.Payload(alert=str(n)), n, 2_000_000_000, 10)
            apns.gateway_server._sent_notifications = []
            apns.gateway_server.send_notification_multiple(frame)
            assert [device.next().json["aps"]["alert"] for _ in range(5)] == list("01234")

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_the_enhanced_command_and_its_error_listener(self, service):
        apns3, apns = self.connect(service, enhanced=True)
        errors, came = [], threading.Event()

        def listen(error):
            errors.append(error)
            came.set()

        with listening_device(service) as device:
            gateway = apns.gateway_server
            gateway.register_response_listener(listen)
            for n, token in enumerate([device.token, BAD_TOKEN, device.token]):
                gateway.send_notification(token, apns3.Payload(alert=str(n)), identifier=n + 1, expiry=2_000_000_000)
            assert came.wait(timeout=PATIENCE)
            assert [(error["status"], error["identifier"]) for error in errors] == [(8, 2)]
            assert device.next().json["aps"]["alert"] == "0"
            # It means to send again what was behind the bad one, and fails at that by itself.
            gateway.force_close()

    def test_the_feedback_list_is_read(self, service):
        _, apns = self.connect(service)
        device = away_device(service)
        dead_app(device)
        ((token, _),) = list(apns.feedback_server.items())
        assert token.decode() == device.token


