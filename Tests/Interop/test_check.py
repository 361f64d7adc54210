"""`herald check`: every payload's verdict, findings and presentation, as `Tests/Payloads` has them."""

import json
import os
import pathlib
import plistlib
import subprocess

import pytest

from commands import one_line
from service import HERALD, PATIENCE, herald

PAYLOADS = pathlib.Path(__file__).parent.parent / "Payloads"
BUNDLE = PAYLOADS / "Monopoly.app"
CASES = json.loads((PAYLOADS / "expectations.json").read_text())


def check(path, *options, stdin=None):
    command = [HERALD, "check", str(path), *map(str, options)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE)


def checked(path, *options, stdin=None):
    return json.loads(check(path, "--json", *options, stdin=stdin).stdout)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_each_payload_gets_its_verdict_and_its_presentation(case):
    path = PAYLOADS / "files" / case["file"]
    options = ["--push-type", case["push_type"], "--bundle", BUNDLE]
    for wanted in case["present"]:
        options += ["--language", wanted["language"]]
    result = check(path, "--json", *options)
    assert result.returncode == (0 if case["status"] == 200 else 1), result.stderr
    report = json.loads(result.stdout)
    assert report["http2"] == {"status": case["status"], "reason": case["reason"]}
    assert report["accepted"] == (case["status"] == 200)
    assert report["binary_status"] == case["binary_status"]
    assert report["size"] == path.stat().st_size
    messages = [finding["message"] for finding in report["findings"]]
    for finding in case["findings"]:
        assert any(finding in message for message in messages), messages
    for wanted in case["present"]:
        shown = next(
            view for view in report["presentations"]
            if view["language"] == wanted["language"] and view["state"] == wanted["state"]
        )
        assert {key: shown.get(key) for key in wanted} == wanted
    text = check(path, *options)
    assert text.returncode == result.returncode and not text.stderr
    lines = text.stdout.decode()
    assert ("accepted" if case["status"] == 200 else f"refused, {case['status']} {case['reason']}") in lines
    assert all(message in lines for message in messages)


def test_strict_makes_warnings_fail():
    assert check("-", "--strict", stdin=b'{"aps":{"alert":"x"}}').returncode == 0
    assert check("-", stdin=b'{"aps":{"allert":"x"}}').returncode == 0
    assert check("-", "--strict", stdin=b'{"aps":{"allert":"x"}}').returncode == 1


def test_the_documents_advice_is_given(tmp_path):
    """No action that destroys something, a title that is read at a glance, and what the documents disagree about."""
    actions = [{"identifier": "REPLY", "title": "Reply"}, {"identifier": "DROP", "title": "AWAY"}]
    (tmp_path / "NotificationCategories.json").write_text(json.dumps({"MAIL": {"actions": actions}}))
    for language, title in {"en": "Delete", "de": "Löschen"}.items():
        (tmp_path / f"{language}.lproj").mkdir()
        (tmp_path / f"{language}.lproj" / "Localizable.strings").write_text(f'"AWAY" = "{title}";\n')
    alert = {"title": "A title that nobody can read at a glance on a watch", "body": "x"}
    payload = json.dumps({"aps": {"alert": alert, "category": "MAIL"}}).encode()
    findings = checked("-", "--bundle", tmp_path, stdin=payload)["findings"]
    assert [(finding["severity"], finding["place"]) for finding in findings] == [
        ("warning", "aps.alert.title"), ("warning", "aps.category"),
    ]
    assert "51 characters" in findings[0]["message"] and "DROP of MAIL looks destructive" in findings[1]["message"]
    text = check("-", "--bundle", tmp_path, stdin=payload).stdout.decode()
    assert all(f"warning: {finding['message']}" in text for finding in findings)
    assert check("-", "--bundle", tmp_path, "--strict", stdin=payload).returncode == 1
    assert "DROP of MAIL looks destructive" in subprocess.run(
        [HERALD, "check", "--bundle", tmp_path], capture_output=True, timeout=PATIENCE, text=True
    ).stdout
    # Neither document wins: a remark, which is not a fault.
    body = b'{"aps":{"alert":{"body":"x"}}}'
    (note,) = checked("-", stdin=body)["findings"]
    assert note["severity"] == "note" and "key reference prefers the dictionary" in note["message"]
    assert check("-", "--strict", stdin=body).returncode == 0


def test_the_check_knows_local_notifications_and_alert_styles():
    good, silent = b'{"aps":{"alert":"x"}}', b'{"aps":{"alert":"x","content-available":1}}'
    report = checked("-", stdin=good)
    assert report["local"] == {"accepted": True, "reason": None}
    assert "\n  local   accepted\n" in check("-", stdin=good).stdout.decode()
    reason = 'remove "content-available": only a remote notification can have it'
    assert checked("-", stdin=silent)["local"] == {"accepted": False, "reason": reason}
    assert f"\n  local   refused: {reason}\n" in check("-", stdin=silent).stdout.decode()
    styles = {view["state"]: (view.get("place"), view.get("style")) for view in report["presentations"]}
    assert styles["background"] == ("banner", "banner") and styles["style alert"] == ("banner", "alert")
    assert styles["style none"][0] == "list"


def test_a_payload_may_come_from_standard_input():
    payload = (PAYLOADS / "files" / "example-1-plain-text-and-custom-array.json").read_bytes()
    report = checked("-", stdin=payload)
    assert report["accepted"] and report["size"] == len(payload) and report["findings"] == []


def test_the_styles_of_alerts_are_shown():
    path = PAYLOADS / "files" / "example-3-text-badge-sound.json"
    views = {view["state"]: view for view in checked(path)["presentations"]}
    assert (views["background"]["place"], views["background"]["style"]) == ("banner", "banner")
    assert (views["style alert"]["place"], views["style alert"]["style"]) == ("banner", "alert")
    assert views["style none"]["place"] == "list" and views["style none"]["sound"] == "bingbong.aiff"
    output = check(path).stdout.decode()
    assert "as an alert" in output and "the user's alert style for" in output


def test_languages_are_shown_side_by_side():
    path = PAYLOADS / "files" / "example-4-localised-body-with-arguments.json"
    lines = check(path, "--bundle", BUNDLE).stdout.decode().splitlines()
    assert any(line.split() == ["de", "en", "fr"] for line in lines)
    assert any("Jenna and Frank have invited you" in line and "Frank et Jenna vous invitent" in line for line in lines)


@pytest.mark.parametrize(
    "options",
    [[], ["-", "--container", "."], ["-", "--push-type", "loud"], ["-", "--language", "a b"], ["-", "--nonsense"], ["a", "b"]],
    ids=" ".join,
)
def test_wrong_usage_exits_64(options):
    result = subprocess.run([HERALD, "check", *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert result.returncode == 64 and b"Usage: herald check" in result.stderr


def test_a_missing_file_is_reported_in_one_line(tmp_path):
    assert "nowhere.json" in one_line(herald("check", tmp_path / "nowhere.json", check=False))
    payload = tmp_path / "x.json"
    payload.write_text('{"aps":{"alert":"x"}}')
    assert "nowhere" in one_line(herald("check", payload, "--bundle", tmp_path / "nowhere", check=False))


@pytest.mark.parametrize(
    "name, content",
    [
        ("Info.plist", b"<plist><dict>"), ("Info.plist", b"bplist00" + bytes(40)),
        ("en.lproj/Localizable.strings", b'"A" = "x"'), ("en.lproj/Localizable.strings", b"\xff\xfe\x00"),
        ("en.lproj/Localizable.stringsdict", b"<?xml?>" + b"<plist>" + b"<dict>" * 100_000),
        ("Localizable.xcstrings", b'{"strings":[]}'),
    ],
    ids=["xml", "binary", "strings", "utf-16", "deep", "catalog"],
)
def test_a_damaged_file_is_reported_by_its_name(tmp_path, name, content):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    payload = tmp_path / "x.json"
    payload.write_text('{"aps":{"alert":"x"}}')
    assert name in one_line(herald("check", payload, "--bundle", tmp_path, check=False))


@pytest.mark.parametrize("kind", [plistlib.FMT_BINARY, plistlib.FMT_XML])
def test_texts_may_be_property_lists(tmp_path, kind):
    for language, text in {"en": "Hello %@", "ja": "%@さん、こんにちは"}.items():
        folder = tmp_path / f"{language}.lproj"
        folder.mkdir()
        (folder / "Localizable.strings").write_bytes(plistlib.dumps({"HELLO": text}, fmt=kind))
    payload = json.dumps({"aps": {"alert": {"loc-key": "HELLO", "loc-args": ["Bob"]}}}).encode()
    report = checked("-", "--bundle", tmp_path, stdin=payload)
    shown = {view["language"]: view["body"] for view in report["presentations"] if view["state"] == "background"}
    assert shown == {"en": "Hello Bob", "ja": "Bobさん、こんにちは"}


def test_every_language_of_a_project_is_checked(tmp_path):
    texts = {"en": '"K" = "%@ of %@";', "de": '"K" = "%2$@ von %1$@";', "fr": '"K" = "%@";', "it": '"OTHER" = "x";'}
    for language, text in texts.items():
        folder = tmp_path / "Sources" / "App" / f"{language}.lproj"
        folder.mkdir(parents=True)
        (folder / "Localizable.strings").write_text(text, encoding="utf-16")
    payload = b'{"aps":{"alert":{"loc-key":"K","loc-args":["a","b"]}}}'
    messages = [finding["message"] for finding in checked("-", "--bundle", tmp_path, stdin=payload)["findings"]]
    assert messages == ["key K missing in it", "K takes 1 argument (fr), 2 given"]


def test_every_text_of_the_app_is_checked_without_a_payload(tmp_path):
    texts = {"en": '"K" = "%@ of %@"; "L" = "l";', "de": '"K" = "%2$@ von %1$@"; "L" = "l";', "fr": '"K" = "%@";'}
    for language, text in texts.items():
        folder = tmp_path / "App" / f"{language}.lproj"
        folder.mkdir(parents=True)
        (folder / "Localizable.strings").write_text(text)
    (tmp_path / "App" / "long.wav").write_bytes(b"no sound at all")
    result = subprocess.run([HERALD, "check", "--bundle", tmp_path, "--json"], capture_output=True, timeout=PATIENCE)
    report = json.loads(result.stdout)
    assert result.returncode == 0 and report["keys"] == 2 and report["texts"] == {"de": 2, "en": 2, "fr": 1}
    assert [finding["message"] for finding in report["findings"]] == [
        "K takes 1 argument in fr, but 2 arguments in de, en", "key L missing in fr",
        "sound long.wav is neither AIFF, WAV nor CAF by its content",
    ]
    strict = subprocess.run([HERALD, "check", "--bundle", tmp_path, "--strict"], capture_output=True, timeout=PATIENCE)
    assert strict.returncode == 1 and b"fr  1 of 2 texts" in strict.stdout and b"key L missing in fr" in strict.stdout


def test_sounds_of_the_container_are_found(tmp_path):
    sounds = tmp_path / "Library" / "Sounds"
    sounds.mkdir(parents=True)
    (sounds / "mine.wav").write_bytes(b"")
    payload = b'{"aps":{"alert":"x","sound":"mine.wav"}}'
    assert checked("-", "--bundle", BUNDLE, "--container", tmp_path, stdin=payload)["findings"] == []
    messages = [finding["message"] for finding in checked("-", "--bundle", BUNDLE, stdin=payload)["findings"]]
    assert messages == ["sound mine.wav is not in the bundle"]


def test_wide_characters_keep_the_columns(tmp_path):
    for language, text in {"en": "Hello", "ja": "ボブさん、こんにちは" * 3}.items():
        folder = tmp_path / f"{language}.lproj"
        folder.mkdir()
        (folder / "Localizable.strings").write_text(f'"K" = "{text}";')
    output = check("-", "--bundle", tmp_path, "--language", "ja", "--language", "en",
                   stdin=b'{"aps":{"alert":{"loc-key":"K"}}}').stdout.decode()
    body = next(line for line in output.splitlines() if line.split()[:1] == ["body"])
    head = next(line for line in output.splitlines() if line.split() == ["ja", "en"])
    before = body[:body.index("Hello")]
    # Each of these takes two columns, where the heading has blanks of one.
    assert len(before) + sum(ord(character) > 0x2FFF for character in before) == head.index("en")


def test_control_characters_of_a_payload_are_not_printed():
    payload = json.dumps({"aps": {"alert": "\x1b[2Jgone\u202e", "a\x1b]0;x\x07": 1}}).encode()
    output = check("-", stdin=payload).stdout
    assert b"\x1b" not in output and b"\x07" not in output and "\u202e" not in output.decode()
