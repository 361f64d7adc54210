"""Kills the service under load at the binary interface: no notification before an answer's identifier is lost.

The interface says so in one way only: an error response speaks for everything that was written before the notification
that it names. So each batch ends with a bad one, as clients do that want to know where they are.
"""

import json
import ssl
import threading

import pytest

from binary import BAD_TOKEN, Binary, enhanced, framed, simple
from provider import Device, away_device
from service import PATIENCE, eventually


class Load(threading.Thread):
    """A provider of one device that counts its notifications, until the service dies."""

    def __init__(self, service, certificate, token, first, chance, on_answer):
        super().__init__(daemon=True)
        self.service, self.certificate, self.token = service, certificate, token
        self.random = chance
        self.sent = self.accepted = first
        self.on_answer = on_answer
        self.error = None

    def run(self):
        try:
            while True:
                with Binary(self.service, self.certificate) as connection:
                    data, last = self.batch()
                    connection.send(data)
                    status, identifier = connection.answer()
                    assert (status, identifier) == (8, last + 1)
                    self.accepted = last
                    self.on_answer()
        except (ssl.SSLError, OSError, TypeError):
            # The service died: refused, reset, or an end without an answer.
            pass
        except BaseException as error:
            self.error = error

    def batch(self):
        """Some notifications, and a bad one; the number of the last good one."""
        data = []
        for _ in range(self.random.choice((1, 20, 300))):
            self.sent += 1
            payload = json.dumps({"n": self.sent}).encode()
            data.append(
                self.random.choice(
                    (
                        lambda: simple(self.token, payload), lambda: enhanced(self.sent, self.token, payload),
                        lambda: framed(self.sent, self.token, payload),
                    )
                )()
            )
        # The number after the last is nobody's: the next batch begins behind it.
        last = self.sent
        self.sent += 1
        data.append(framed(self.sent, BAD_TOKEN))
        return b"".join(data), last


@pytest.mark.slow
def test_answered_notifications_survive_a_kill(fresh, rounds):
    service = fresh().start()
    certificate = service.provider_certificate()
    away = [away_device(service, name=f"away{n}") for n in range(2)]
    connected = Device(service, name="connected").start()
    connected.stop()
    devices = [*away, connected]
    numbers = {device.id: 0 for device in devices}
    total = 0
    for cycle in rounds:
        connected.start()
        enough, answers = threading.Event(), []
        deaths = rounds.random(cycle).randrange(1, 40)

        def answered():
            answers.append(1)
            if len(answers) >= deaths:
                enough.set()

        loads = [
            Load(service, certificate, device.token, numbers[device.id], rounds.random(cycle, number), answered)
            for number, device in enumerate(devices)
        ]
        for load in loads:
            load.start()
        assert enough.wait(timeout=PATIENCE), "the load does not advance"
        service.kill()
        for load in loads:
            load.join(timeout=PATIENCE)
            assert load.error is None, f"cycle {cycle}: {load.error!r}"
        connected.stop()
        service.start()
        for load, device in zip(loads, devices):
            device.start()
            # The newest that was vouched for, or one behind it that was stored and never vouched for.
            if load.accepted > numbers[device.id]:
                total += load.accepted - numbers[device.id]
                eventually(
                    lambda: any(message.json["n"] >= load.accepted for message in device.messages),
                    what=f"number {load.accepted} of {load.sent} after crash {cycle}",
                )
            assert all(message.json["n"] <= load.sent for message in device.messages)
            device.stop()
            numbers[device.id] = load.sent
    rounds.report(accepted=total)
    assert total >= rounds.done
    assert service.stop() == 0
