"""The HTTP/2 connection of a provider: streams, frames, and its end."""

import time

import h2.settings
import hpack
import pytest

from parties import assert_accepted, assert_refused, new_id
from provider import Disconnected, Provider, away_device, listening_device, provider_token
from service import PATIENCE, TOPIC, eventually, herald, once_within

STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


def in_time(attempt):
    """Tries again where a machine that pauses took longer for a body than the ten seconds that it is given."""
    for _ in range(5):
        if all(answer.reset != 8 for answer in attempt()):
            return
    raise AssertionError("bodies were late five times")


class TestStreams:
    def test_a_certificate_gets_hundreds_of_streams_at_once(self, parties):
        with parties.provider() as provider:
            settings = provider.wait_for_settings()
            assert 100 <= settings[STREAMS] <= 1500
            assert settings[h2.settings.SettingCodes.HEADER_TABLE_SIZE] == 4096
            assert settings[h2.settings.SettingCodes.MAX_FRAME_SIZE] == 16384

    def test_a_token_connection_gets_one_stream_until_its_token_is_valid(self, parties):
        with parties.provider("key") as provider:
            assert provider.wait_for_settings()[STREAMS] == 1
            assert provider.push(parties.token, authorization="bearer x.y.z").status == 403
            assert provider.push(parties.token, authorization=None).status == 403
            assert len(provider.settings) == 1
            assert_accepted(provider.push(parties.token))
            assert 100 <= provider.wait_for_settings(2)[STREAMS] <= 1500

    def test_a_valid_token_raises_the_stream_limit_even_if_the_request_fails(self, parties):
        with parties.provider("key") as provider:
            assert provider.push("00").status == 400
            assert provider.wait_for_settings(2)[STREAMS] >= 100

    @pytest.mark.parametrize("kind", ["certificate", "key"])
    def test_streams_opened_before_the_settings_were_read_are_served(self, parties, kind):
        with parties.provider(kind) as provider:
            # Nothing has been read yet: h2 knows of no limit, as aioapns at its start.
            streams = [provider.send(parties.token) for _ in range(400)]
            assert [provider.answer(stream).status for stream in streams] == [200] * 400

    def test_all_early_streams_may_be_open_together(self, parties):
        def attempt():
            with parties.provider() as provider:
                count = provider.wait_for_settings()[STREAMS]
                streams = [provider.send(parties.token, b'{"aps":', end=False) for _ in range(count)]
                provider.ping()
                assert not any(provider.answers[stream].ended and provider.answers[stream].reset != 8 for stream in streams)
                return finish(provider, streams)

        in_time(attempt)

    def test_only_the_excess_stream_is_refused(self, parties):
        def attempt():
            with parties.provider() as provider:
                count = provider.wait_for_settings()[STREAMS]
                streams = [provider.send(parties.token, b'{"aps":', end=False) for _ in range(count)]
                provider.ping()
                # The client forgets the limit that it has acknowledged.
                provider.h2.remote_settings.max_concurrent_streams = 10_000
                provider.h2.remote_settings.acknowledge()
                surplus = provider.answer(provider.send(parties.token))
                answers = finish(provider, streams)
                assert surplus.reset == 7 or any(answer.reset == 8 for answer in answers)
                return answers

        in_time(attempt)

    def test_a_connection_is_used_a_thousand_times(self, parties):
        with parties.provider("key") as provider:
            assert_accepted(provider.push(parties.token))
            answers = provider.push_many([parties.token] * 500 + ["00"] * 100 + [parties.token] * 400)
            assert [answer.status for answer in answers] == [200] * 500 + [400] * 100 + [200] * 400
            assert len({answer.id for answer in answers}) == 1000
            assert provider.goaways == []

    def test_two_hundred_connections_at_once_are_served(self, parties):
        providers = []
        for _ in range(200):
            providers.append(parties.provider())
            # Acknowledged: the service waits half a minute for it, and 200 connections may take longer.
            providers[-1].wait_for_settings()
        streams = [provider.send(parties.token) for provider in providers]
        for provider, stream in zip(providers, streams, strict=True):
            assert_accepted(provider.answer(stream))
            provider.close()


def finish(provider, streams):
    """Sends the rest of the bodies; the answers, which are 200 for all that were not late."""
    for stream in streams:
        provider.send_body(stream, b"{}}")
    answers = [provider.answer(stream) for stream in streams]
    assert {answer.status for answer in answers if answer.reset != 8} <= {200}
    return answers


class TestFrames:
    def test_every_ping_is_answered(self, parties):
        with parties.provider() as provider:
            # Five minutes of the most eager client known, which pings each second.
            for count in range(300):
                provider.ping(count.to_bytes(8, "big"))
            assert provider.pongs == [count.to_bytes(8, "big") for count in range(300)]
            assert_accepted(provider.push(parties.token))

    def test_a_ping_is_answered_while_requests_are_in_flight(self, parties):
        with parties.provider() as provider:
            streams = [provider.send(parties.token) for _ in range(100)]
            provider.ping()
            assert {provider.answer(stream).status for stream in streams} == {200}

    def test_every_form_of_header_compression_is_decoded(self, parties):
        with parties.provider() as provider:
            for size in (4096, 0, 100, 4096):
                provider.h2.encoder.header_table_size = size
                assert_accepted(provider.push(parties.token))
            id = new_id()
            fields = [
                (b":method", b"POST"), (b":scheme", b"https"), (b":path", f"/3/device/{parties.token}".encode()),
                (b":authority", b"localhost"), (b"apns-topic", TOPIC.encode()), (b"apns-id", id.encode()),
            ]
            stream = provider.h2.get_next_available_stream_id()
            provider.request([hpack.NeverIndexedHeaderTuple(*field) for field in fields], b"{}")
            assert_accepted(provider.answer(stream), id)

    def test_padding_priorities_and_trailers_are_accepted(self, parties):
        with parties.provider() as provider:
            provider.h2.prioritize(1, weight=17, depends_on=0)
            id = new_id()
            stream = provider.send(parties.token, None, id=id, end=False)
            provider.h2.send_data(stream, b'{"aps":', pad_length=200)
            provider.h2.send_data(stream, b"{}}", pad_length=0)
            provider.h2.send_headers(stream, [(b"x-trailer", b"1")], end_stream=True)
            provider.flush()
            assert_accepted(provider.answer(stream), id)

    def test_continuation_frames_are_joined(self, parties):
        with parties.provider() as provider:
            headers = [(f"x-filler-{n}", "y" * 3000) for n in range(2)]
            provider.h2.max_outbound_frame_size = 2048
            assert_accepted(provider.push(parties.token, headers=headers))

    def test_a_cancelled_request_disturbs_no_other(self, parties):
        with parties.provider() as provider:
            for _ in range(50):
                stream = provider.send(parties.token, b"{", end=False)
                provider.h2.reset_stream(stream, error_code=8)
                provider.answers[stream].ended = True
            assert_accepted(provider.push(parties.token))

    def test_an_upper_case_header_name_ends_only_its_stream(self, parties):
        with parties.provider() as provider:
            answer = provider.push(parties.token, headers=[("Apns-Priority", "10")])
            assert answer.status == 400 or answer.reset == 1
            assert_accepted(provider.push(parties.token))


class TestConnectionEnd:
    def test_a_stop_answers_open_requests_and_sends_goaway(self, fresh):
        # Long enough for any machine between two steps: the grace period closes even what is busy.
        service = fresh("--grace-period", "120s").start()
        device = away_device(service)
        certificate = service.provider_certificate()
        with Provider(service, certificate) as busy, Provider(service, certificate) as idle:
            idle.wait_for_settings()
            assert_accepted(busy.push(device.token))
            half = busy.send(device.token, b'{"aps":', end=False, id=new_id())
            streams = [busy.send(device.token) for _ in range(300)]
            busy.ping()
            service.process.send_signal(15)
            idle.pump(lambda: any(goaway.additional_data for goaway in idle.goaways), what="the GOAWAY")
            assert idle.goaways[-1].additional_data == b'{"reason":"Shutdown"}'
            assert idle.goaways[-1].error_code == 0
            idle.wait_for_close()
            busy.send_body(half, b"{}}")
            for stream in streams:
                answer = busy.answer(stream)
                if answer.status != 200:
                    assert_refused(answer, 503, "Shutdown")
            answer = busy.answer(half)
            # Reset, if it came later than the ten seconds for a body.
            assert (answer.status, answer.reason) in ((200, None), (503, "Shutdown")) or answer.reset == 8
            busy.pump(lambda: any(goaway.additional_data for goaway in busy.goaways), what="the GOAWAY")
            assert busy.goaways[-1].additional_data == b'{"reason":"Shutdown"}'
            busy.wait_for_close()
        assert service.process.wait(timeout=PATIENCE) == 0

    def test_an_endless_request_does_not_delay_a_stop(self, fresh):
        def stop():
            service = fresh("--grace-period", "1s").start()
            device = away_device(service)
            with Provider(service, service.provider_certificate()) as provider:
                provider.send(device.token, b"{", end=False)
                provider.ping()
                begin = time.monotonic()
                assert service.stop() == 0
                return time.monotonic() - begin

        # After ten seconds the request is reset, and nothing is left to wait for.
        once_within(8, stop)

    def test_a_stop_loses_no_accepted_notification(self, fresh):
        service = fresh().start()
        devices = [away_device(service) for _ in range(4)]
        certificate = service.provider_certificate()
        accepted = {}
        with Provider(service, certificate) as provider:
            sent = [(device, new_id()) for _ in range(50) for device in devices]
            streams = [(provider.send(device.token, id=id), device, id) for device, id in sent]
            service.process.send_signal(15)
            for stream, device, id in streams:
                try:
                    answer = provider.answer(stream)
                except (Disconnected, TimeoutError):
                    break
                if answer.status == 200:
                    accepted[device.id] = id
        assert service.process.wait(timeout=PATIENCE) == 0
        service.start()
        for device in devices:
            if device.id in accepted:
                with device.start():
                    waiting = [id for owner, id in sent if owner is device]
                    assert waiting.index(device.next().id) >= waiting.index(accepted[device.id])

    def test_a_protocol_error_ends_the_connection_with_a_goaway(self, parties):
        with parties.provider() as provider:
            provider.wait_for_settings()
            # DATA on stream 0 (RFC 9113, section 6.1).
            provider.socket.sendall(bytes.fromhex("000001000000000000") + b"x")
            goaway = provider.wait_for_goaway()
            assert int(goaway.error_code) == 1
            provider.wait_for_close()

    def test_a_device_stays_connected_when_its_provider_disconnects(self, shared, parties):
        with listening_device(shared) as device:
            for _ in range(3):
                with parties.provider("key") as provider:
                    assert_accepted(provider.push(device.token))
                device.next()

    def test_a_revoked_provider_is_disconnected(self, shared):
        key = shared.provider_key("com.example.revoked", team="REVOKED001")
        token = away_device(shared, "com.example.revoked").token
        with Provider(shared, key=key, topic="com.example.revoked") as provider:
            assert_accepted(provider.push(token))
            herald("provider", "revoke", "--data", shared.data, key[1])

            def is_refused():
                try:
                    answer = provider.push(token)
                except Disconnected:
                    return True
                return (answer.status, answer.reason) == (403, "InvalidProviderToken")

            eventually(is_refused, what="the refusal")
        with Provider(shared) as provider:
            answer = provider.push(token, topic="com.example.revoked", authorization=f"bearer {provider_token(key)}")
            assert_refused(answer, 403, "InvalidProviderToken")
