"""The movable clock: hours, months and years pass in milliseconds, and no jump does harm."""

import contextlib
import json
import time

import pytest

from binary import feedback
from commands import one_line
from parties import advance, assert_accepted, assert_refused, dead_app, new_id
from provider import Disconnected, Provider, away_device, connect_tls, listening_device, provider_token, tls_context
from service import eventually, herald

DAY = 86_400


@pytest.fixture
def service(fresh):
    return fresh("--clock", "adjustable").start()


def move(service, *words):
    return json.loads(herald("clock", "advance", *words, "--data", service.data, "--json").stdout)


def token_at(service, key):
    """A provider token of the service's own moment."""
    now = json.loads(herald("clock", "show", "--data", service.data, "--json").stdout)["milliseconds"] // 1000
    return f"bearer {provider_token(key, claims={'iss': key[2], 'iat': now})}"


class TestCommand:
    def test_the_time_is_shown_and_moved(self, service):
        begin = time.time()
        before = json.loads(herald("clock", "--data", service.data, "--json").stdout)
        assert before["adjustable"] and begin - 1 < before["milliseconds"] / 1000 < time.time() + 1
        after = move(service, "30d")
        # And what the commands have taken.
        assert 0 <= (after["milliseconds"] - before["milliseconds"]) / 1000 - 30 * DAY < time.time() - begin + 1
        back = move(service, "30d", "--back")
        assert (back["milliseconds"] - before["milliseconds"]) / 1000 < time.time() - begin + 1
        assert "(can be moved)" in herald("clock", "show", "--data", service.data).stdout

    def test_a_move_is_logged(self, service):
        words = "clock can be moved: not for production"
        eventually(lambda: any(" warning " in line and words in line for line in service.lines), what="the log")
        move(service, "1h")
        eventually(lambda: any(" warning " in line and "clock was moved" in line for line in service.lines))

    def test_the_clock_of_a_service_in_production_cannot_be_moved(self, fresh):
        service = fresh().start()
        result = herald("clock", "advance", "1h", "--data", service.data, check=False)
        assert "start it with --clock adjustable" in one_line(result)
        assert "can be moved" not in herald("clock", "show", "--data", service.data).stdout

    @pytest.mark.parametrize("time", ["soon", "1y", "", "1.5h"])
    def test_an_invalid_time_is_wrong_usage(self, service, time):
        assert herald("clock", "advance", time, "--data", service.data, check=False).returncode == 64


class TestEffects:
    def test_a_provider_token_expires_after_an_hour(self, service):
        key = service.provider_key()
        device = away_device(service)
        with Provider(service, key=key) as provider:
            assert_accepted(provider.push(device.token))
            move(service, "59m")
            assert_accepted(provider.push(device.token))
            move(service, "2m")
            assert_refused(provider.push(device.token), 403, "ExpiredProviderToken")
            assert_accepted(provider.push(device.token, authorization=token_at(service, key)))

    def test_expired_notifications_are_gone_when_the_command_returns(self, service):
        device = away_device(service)
        id = new_id()
        with Provider(service, service.provider_certificate()) as provider:
            assert_accepted(provider.push(device.token, id=id), id)
        move(service, "29d")
        assert [line["state"] for line in service.journal(id)] == ["received", "stored"]
        move(service, "25h")
        assert service.journal(id)[-1]["reason"] == "expired"

    def test_a_providers_certificate_expires_and_its_connection_ends(self, service):
        certificate = service.provider_certificate()
        device = away_device(service)
        with Provider(service, certificate) as provider:
            assert_accepted(provider.push(device.token))
            move(service, "3650d")
            assert provider.wait_for_goaway().additional_data == b'{"reason":"BadCertificate"}'
            provider.wait_for_close()
        with Provider(service, certificate) as provider:
            assert provider.wait_for_goaway().additional_data == b'{"reason":"BadCertificate"}'

    def test_a_devices_certificate_expires_and_its_connection_ends(self, service):
        device = listening_device(service)
        try:
            move(service, "3650d")
            eventually(
                lambda: any("certificate is revoked or has expired" in line for line in service.lines), what="the end"
            )
        finally:
            device.stop()

    @pytest.mark.parametrize("days", [30, 400, 1000])
    def test_certificates_issued_after_a_jump_are_valid(self, service, days):
        """TLS libraries judge by the machine's clock, the service by its own: both take it."""
        move(service, f"{days}d")
        device = away_device(service)
        with Provider(service, service.provider_certificate()) as provider:
            assert_accepted(provider.push(device.token))
        with device.start():
            device.next()

    def test_the_server_certificate_is_renewed_before_it_expires(self, service):
        def shown():
            return connect_tls(service.listeners["api"], tls_context(service.ca)).getpeercert()

        before = shown()
        with Provider(service, key=service.provider_key()) as provider:
            # It has 820 days, and is made anew when 90 are left; nobody is disconnected for it.
            move(service, "700d")
            assert shown()["serialNumber"] == before["serialNumber"]
            move(service, "40d")
            after = shown()
            assert after["serialNumber"] != before["serialNumber"]
            provider.ping()
            assert provider.goaways == []

    def test_a_service_may_start_in_another_year(self, fresh):
        service = fresh("--clock", "+365d").start()
        device = away_device(service)
        with Provider(service, service.provider_certificate()) as provider:
            assert_accepted(provider.push(device.token))

    def test_the_feedback_list_has_the_service_clocks_times(self, service):
        """And a list that nobody reads for most of a year is there in the end."""
        certificate = service.provider_certificate()
        first, second = away_device(service), away_device(service)
        begin = time.monotonic()
        dead_app(first, certificate=certificate)
        move(service, "7d")
        dead_app(second, certificate=certificate)
        move(service, "300d")
        (early, token), (late, later) = feedback(service, certificate)
        assert (token, later) == (first.token, second.token)
        assert 7 * DAY <= late - early <= 7 * DAY + time.monotonic() - begin + 1


class TestJumps:
    @pytest.mark.parametrize("jump", [["1h"], ["1h", "--back"], ["365d"], ["365d", "--back"]])
    def test_a_jump_under_load_crashes_nothing(self, service, jump):
        certificate = service.provider_certificate()
        device = listening_device(service)
        with device, Provider(service, certificate) as provider:
            streams = [provider.send(device.token) for _ in range(100)]
            move(service, *jump)
            for stream in streams:
                # A certificate may expire at the jump, or not have begun; what was not answered then was not accepted.
                with contextlib.suppress(Disconnected):
                    assert provider.answer(stream).status in (200, 403)
            move(service, *([jump[0]] if jump[1:] else [jump[0], "--back"]))
            assert service.process.poll() is None
        id = new_id()
        with Provider(service, certificate) as provider:
            assert_accepted(provider.push(device.token, id=id), id)
        with device.start():
            eventually(lambda: any(message.id == id for message in device.messages), what="the notification")

    def test_connection_timeouts_ignore_the_clock(self, service):
        """An idle connection, a stream that waits for its body, a handshake: none is hurried or prolonged."""
        device = away_device(service)
        with Provider(service, service.provider_certificate()) as provider:
            # Again, if the machine takes the ten seconds of a body for that.
            for _ in range(5):
                begin = time.monotonic()
                stream = provider.send(device.token, b'{"aps":', end=False)
                provider.ping()
                advance(service, 7200)
                provider.ping()
                assert provider.goaways == []
                provider.send_body(stream, b"{}}")
                answer = provider.answer(stream)
                if time.monotonic() - begin < 9 or answer.reset != 8:
                    break
            assert_accepted(answer)
            begin = time.monotonic()
            half = provider.send(device.token, b'{"aps":', end=False)
            provider.ping()
            move(service, "10h", "--back")
            # Its ten seconds pass all the same.
            assert provider.answer(half).reset == 8
            assert time.monotonic() - begin > 9

    def test_a_jump_back_delays_expiry_by_at_most_the_jump(self, service):
        device = away_device(service)
        now = int(time.time())
        with Provider(service, service.provider_certificate()) as provider:
            move(service, "1h", "--back")
            assert_accepted(provider.push(device.token, expiration=now + 600))
            move(service, "1h")
        with device.start():
            assert device.next().expiry <= 600
