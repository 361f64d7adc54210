"""Jumps of the machine's clock: Herald withholds notifications that look expired, and deletes none of them."""

import json
import time

import pytest

from machine_clock import MachineClock
from mqtt_device import Identity
from parties import assert_accepted, new_id
from provider import Provider, away_device
from service import eventually, herald

DAY = 86_400
#: The journal's last word on the notification while it is stored.
WAITING = "device offline"


@pytest.fixture
def machine(fresh, tmp_path):
    """A service on a machine whose wall clock a test moves, and nothing but that clock."""
    clock = MachineClock(tmp_path)
    service = fresh(prefix=clock.prefix).start()
    service.jump = clock.move
    service.away = away_device(service)
    service.waiting = new_id()
    with Provider(service, service.provider_certificate()) as provider:
        assert_accepted(
            provider.push(service.away.token, id=service.waiting, expiration=int(time.time()) + DAY), service.waiting
        )
    return service


def warnings(service):
    return " ".join(json.loads(herald("status", "--data", service.data, "--json", check=False).stdout).get("warnings") or [])


def last(service):
    line = service.journal(service.waiting)[-1]
    return line.get("reason") or line["state"]


def accept(service):
    return json.loads(herald("clock", "accept", "--data", service.data, "--json").stdout)


def test_a_notification_outlives_a_jump_while_running(machine):
    machine.jump(2 * DAY)
    assert "jumped by +2d" in warnings(machine)
    eventually(lambda: any(" error " in line and "clock has jumped" in line for line in machine.lines), what="the log")
    # The start sweeps what has expired.
    machine.stop()
    machine.start()
    assert "jumped by +2d" in warnings(machine)
    assert last(machine) == WAITING
    machine.jump(0)
    assert warnings(machine) == ""
    with machine.away.start():
        assert machine.away.next().id == machine.waiting


def test_a_jump_that_the_operator_accepts_expires_it(machine):
    machine.jump(2 * DAY)
    assert "herald clock accept" in warnings(machine)
    shown = json.loads(herald("clock", "show", "--data", machine.data, "--json").stdout)
    assert abs(shown["jump_seconds"] - 2 * DAY) < 600
    assert "jump_seconds" not in accept(machine)
    assert last(machine) == "expired"
    assert warnings(machine) == ""


@pytest.mark.parametrize(("days", "words"), [(2, "+2d"), (-2, "-2d")])
def test_a_jump_between_stop_and_start_is_found(machine, days, words):
    machine.stop()
    machine.jump(days * DAY)
    machine.start()
    assert f"jumped by {words}" in warnings(machine)
    assert last(machine) == WAITING


def test_a_start_before_2020_is_no_jump(machine):
    """A board without a battery clock, before a time service sets its clock."""
    machine.stop()
    machine.jump(int(60 * DAY - time.time()))
    machine.start()
    assert "clock is not set" in warnings(machine)
    assert "jump_seconds" not in accept(machine), "such a clock cannot be accepted"
    assert "clock is not set" in warnings(machine)
    assert last(machine) == WAITING
    machine.jump(0)
    assert warnings(machine) == ""
    with machine.away.start():
        assert machine.away.next().id == machine.waiting


def test_waiting_goes_on_while_the_clock_is_ahead(fresh, tmp_path):
    """A start with the clock ahead; `machine_clock.library` says what broke here."""
    clock = MachineClock(tmp_path)
    service = fresh(prefix=clock.prefix).start()
    certificate, device = service.provider_certificate(), Identity(service)
    service.stop()
    # More than the machine has been up.
    clock.move(60 * DAY)
    service.start()
    link = device.stay()
    with Provider(service, certificate) as provider:
        token = link.register()
        # Answered once it is stored, after the grace for its acknowledgement.
        assert provider.push(token).status == 200
    link.notification(acknowledge=False)
    device.close()
