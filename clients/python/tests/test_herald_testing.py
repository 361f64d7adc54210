"""The package with the real binary."""

import json
import pathlib
import queue
import subprocess
import sys
import time

import pytest

from herald_testing import Herald, HeraldError, HeraldMissing, HeraldTimeout, HeraldTooOld
from herald_testing.process import Guarded

TOPIC = "com.example.chat"
#: Seconds that something may take which is bound to come.
PATIENCE = 60


def test_a_notification_is_shown_in_the_language_of_the_user(herald, device, tmp_path):
    bundle = tmp_path / "Chat.app"
    (bundle / "de.lproj").mkdir(parents=True)
    (bundle / "Info.plist").write_text(f'<plist version="1.0"><dict><key>CFBundleIdentifier</key><string>{TOPIC}</string></dict></plist>')
    (bundle / "de.lproj" / "Localizable.strings").write_text('"READY" = "%@ ist fertig";')
    token = device.install(bundle)
    device.set(languages=["de"])
    answer = herald.send(token, TOPIC, {"aps": {"alert": {"loc-key": "READY", "loc-args": ["Das Essen"]}}}, collapse_id="dinner")
    assert answer.status == 200
    found = device.wait_for(TOPIC)
    assert (found.body, found.shown, found.apns_id, found.collapse_id) == ("Das Essen ist fertig", True, answer.apns_id, "dinner")
    assert device.notifications == [found]
    # The device has it before its answer is in the journal.
    end = time.monotonic() + PATIENCE
    while [line["state"] for line in herald.journal(answer.apns_id)][-1] != "delivered":
        assert time.monotonic() < end
    number = device.snapshot()["notifications"][0]["id"]
    device.perform("tap", notification=number)
    assert json.loads(herald.run("status", "--json"))["ready"]


def test_devices_do_not_see_each_others_notifications(herald, device):
    with herald.device() as other:
        tokens = [each.install(TOPIC) for each in (device, other)]
        herald.send(tokens[0], TOPIC, alert="one")
        herald.send(tokens[1], TOPIC, alert="two")
        assert (device.wait_for().body, other.wait_for().body) == ("one", "two")
        assert len(device.notifications) == len(other.notifications) == 1


def test_a_device_that_is_away_gets_the_newest_when_it_returns(herald, device):
    token = device.install(TOPIC)
    with device.offline():
        for text in ("first", "second"):
            assert herald.send(token, TOPIC, alert=text).status == 200
    assert device.wait_for(where=lambda found: found.body == "second").payload == {"aps": {"alert": "second"}}


def test_what_a_sender_sent_is_caught_and_tests_that_run_at_once_see_their_own(herald, device):
    token = device.install(TOPIC)

    def send(tag, text):
        return herald.send(token, TOPIC, {"aps": {"alert": text}, "herald": {"tag": tag}})

    answer, other = send("login", "Welcome"), send("logout", "Bye")
    (found,) = herald.caught("tag:login")
    assert (found.status, found.topic, found.payload["aps"], found.apns_id) == (200, TOPIC, {"alert": "Welcome"}, answer.apns_id)
    assert found.headers["apns-push-type"] == "alert" and found.device
    herald.send("0" * 64, TOPIC, {"aps": {}, "herald": {"tag": "login"}})
    assert herald.caught("tag:login -status:200")[0].reason == "BadDeviceToken"
    assert herald.clear_caught("tag:login") == 2
    assert [each.apns_id for each in herald.caught("tag:logout")] == [other.apns_id]
    assert herald.caught("tag:login", wait=0) == []
    with pytest.raises(HeraldTimeout):
        herald.caught("tag:login", wait=0.1)
    with pytest.raises(HeraldError, match="tag:"):
        herald.caught("colour:red")


def test_refusals_and_drills(herald, device):
    token = device.install(TOPIC, allow=[])
    assert herald.send("0" * 64, TOPIC, alert="?").reason == "BadDeviceToken"
    with herald.drill("refuse", "--reason", "InternalServerError", "--topic", TOPIC):
        assert herald.send(token, TOPIC, alert="?").status == 500
    assert herald.send(token, TOPIC, alert="?").status == 200


def test_a_clock_of_its_own(own_herald):
    with own_herald.device() as device:
        token = device.install(TOPIC)
        with device.offline():
            assert own_herald.send(token, TOPIC, alert="too late", expiration="10m").status == 200
            own_herald.advance(20 * 60)
        assert own_herald.send(token, TOPIC, alert="in time").status == 200
        assert device.wait_for().body == "in time"


def test_the_shared_clock_stays(herald):
    with pytest.raises(HeraldError, match="clock"):
        herald.advance(60)


def test_a_wait_in_vain_fails_the_test(device):
    with pytest.raises(HeraldTimeout, match="no notification for com.example.chat came within 0.01 s"):
        device.wait_for(TOPIC, timeout=0.01)


def test_a_binary_is_missing_or_too_old(monkeypatch, tmp_path):
    monkeypatch.setenv("HERALD_BINARY", str(tmp_path / "herald"))
    with pytest.raises(HeraldMissing, match="is not a program"):
        Herald()
    monkeypatch.delenv("HERALD_BINARY")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HeraldMissing, match="no `herald` in PATH"):
        Herald()
    monkeypatch.undo()
    (tmp_path / "herald").write_text('#!/bin/sh\necho "herald 0.1.0"\n[ "$1" = --version ]\n')
    (tmp_path / "herald").chmod(0o755)
    with pytest.raises(HeraldTooOld, match="is Herald 0.1.0, and herald-testing needs"):
        Herald(binary_path=tmp_path / "herald")


def test_a_start_that_fails_says_why():
    with pytest.raises(HeraldError, match="journal-days"):
        Herald("--journal-days", "0")


def test_a_process_that_does_not_stop_is_ended_by_force(tmp_path):
    lines = queue.SimpleQueue()
    process = Guarded(["sh", "-c", "trap '' TERM; echo ready; exec sleep 600"], str(tmp_path / "log"), lines.put, patience=0.5)
    assert lines.get(timeout=PATIENCE) == "ready"
    process.stop()
    assert lines.get(timeout=PATIENCE) is None


def test_all_ends_with_a_killed_process():
    program = (
        "import os, signal; from herald_testing import Herald; herald = Herald(); device = herald.device()\n"
        "print(herald.run('status', '--json')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    service = json.loads(result.stdout)["service"]["pid"]
    end = time.monotonic() + PATIENCE
    while pathlib.Path(f"/proc/{service}").exists():
        assert time.monotonic() < end, "the service goes on"
        time.sleep(0.02)
