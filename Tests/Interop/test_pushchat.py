"""PushChat: two people talk by push on two devices of one laptop, in Chromium, and no message is lost."""

import json
import subprocess

import pytest
from parties import remove_app
from provider import Provider, listening_device
from pushchat import APP, BUNDLE, PUSHCHAT, Room, Server
from selenium.webdriver.common.keys import Keys
from service import PATIENCE, ROOT, eventually, herald

if not PUSHCHAT.exists():
    raise pytest.UsageError(f"{PUSHCHAT} is not there; run `make examples` first")


@pytest.fixture(scope="module")
def room(shared, tmp_path_factory, chromium):
    room = Room(shared, tmp_path_factory.mktemp("pushchat"), chromium)
    yield room
    room.close()


@pytest.fixture
def ann(room):
    """Ann looks at the chat."""
    room.ann.act(do="unlock")
    room.ann.open_app()
    return room.ann


@pytest.fixture
def bob(room):
    """Bob looks at the chat, and nothing is on his screen."""
    room.bob.act(do="unlock")
    room.bob.act(do="clear")
    room.bob.open_app()
    return room.bob


def test_a_message_appears_in_an_open_app(ann, bob):
    ann.say("Hello Bob")
    bob.reads("Hello Bob")
    # It came by push, to the app alone.
    assert bob.received("Ann: Hello Bob")["alert"] == {
        "title": "New message", "body": "Ann: Hello Bob", "action-loc-key": "REPLY",
    }
    assert bob.snapshot["notifications"] == [] and bob.on_screen["badge"] == 0
    bob.say("Hello Ann", "How are you?")
    ann.reads("Hello Ann", "How are you?")
    ann.app().one("#members", "In the room: Ann, Bob")
    assert ann.browser.complaints() == []


def test_a_locked_device_shows_the_alert_and_opening_it_opens_the_chat(ann, bob):
    bob.act(do="lock")
    ann.say("Dinner is ready", "It gets cold")
    bob.alerted("Ann: Dinner is ready")
    shown = bob.alerted("Ann: It gets cold")
    assert (shown["slider"], bob.on_screen["badge"]) == ("Reply", 2)
    assert [sound["name"] for sound in bob.snapshot["sounds"]][-2:] == ["beep.caf", "beep.caf"]
    page = bob.screen()
    page.one(".lock-list .card")
    page.one(".slider input").send_keys(Keys.ENTER)
    bob.reads("Dinner is ready", "It gets cold")
    # The icon has no number when everything is read.
    eventually(lambda: bob.on_screen["badge"] == 0, what="an icon without a number")


def test_the_device_and_the_server_speak_the_users_language(ann, bob, room):
    """The app tells its provider of a change: the server writes the title, and the device finds the button's."""
    page = bob.app()
    bob.act(do="set", languages=["de-AT", "en"])
    page.until(lambda: page.one("#send").text == "Senden")
    told = "SELECT languages FROM devices WHERE device_token = ?"
    eventually(lambda: room.queue.run(told, bob.device_token)[0]["languages"] == "de-AT,en", what="the new languages")
    bob.act(do="lock")
    ann.say("Guten Abend")
    shown = bob.alerted("Ann: Guten Abend")
    assert (shown["title"], shown["slider"]) == ("Neue Nachricht", "Antworten")
    page = bob.open_app()
    # No text is in French, and nobody else's language has changed.
    bob.act(do="set", languages=["fr", "en"])
    page.until(lambda: page.one("#send").text == "Send")
    bob.say("Good night")
    ann.reads("Good night")
    assert ann.received("Bob: Good night")["alert"]["title"] == "New message"
    eventually(lambda: room.queue.run(told, bob.device_token)[0]["languages"] == "fr,en", what="the new languages")


def test_a_long_message_is_shortened_only_in_the_alert(ann, bob, room):
    text = "👍🏽 “so” \\ " * 400
    bob.act(do="lock")
    page = ann.app()
    page.run("document.getElementById('text').value = arguments[0]", text)
    page.one("#text").send_keys(Keys.ENTER)
    shown = eventually(lambda: bob.snapshot["notifications"], timeout=PATIENCE, what="the alert")[0]
    assert shown["body"].startswith("Ann: 👍🏽 “so”") and shown["body"].endswith("…")
    (row,) = room.queue.run("SELECT payload, status FROM push_queue ORDER BY id DESC LIMIT 1")
    # As much as fits: one more of the longest characters would be too much.
    assert 4096 - 40 < len(row["payload"].encode()) <= 4096
    bob.open_app()
    bob.reads(text)


def test_a_network_cut_loses_nothing(ann, bob, room):
    bob.act(do="home")
    bob.act(do="set", network=False)
    said = [f"while you were away {number}" for number in range(4)]
    ann.say(*said)
    # The relay finishes before the network is back: later notifications would be shown too.
    room.queue.drained()
    assert bob.snapshot["notifications"] == []
    bob.act(do="set", network=True)
    # The service keeps the newest notification for an absent device; the chat has every message.
    shown = bob.alerted(f"Ann: {said[-1]}")
    assert len(bob.snapshot["notifications"]) == 1 and bob.on_screen["badge"] == 4
    bob.act(do="tap", id=shown["id"])
    bob.reads(*said)


def test_a_killed_relay_loses_nothing(ann, bob, room):
    bob.act(do="home")
    ann.say("before")
    room.relay.kill()
    said = [f"without a relay {number}" for number in range(3)]
    ann.say(*said)
    room.relay.start()
    for text in ["before", *said]:
        bob.alerted(f"Ann: {text}")
    assert len(bob.snapshot["notifications"]) == 4, "one of them came twice"
    bob.open_app()
    bob.reads("before", *said)
    bob.say("all there")
    ann.reads("all there")


def test_a_killed_server_loses_nothing(ann, bob, room):
    """Every message that the server confirmed is stored and was sent."""
    bob.act(do="home")
    said = [f"your server is about to end {number}" for number in range(3)]
    ann.say(*said)
    port = room.chat.url.rsplit(":", 1)[1].strip("/")
    room.chat.process.kill()
    room.chat.process.wait(timeout=PATIENCE)
    room.chat.start(port)
    for text in said:
        bob.alerted(f"Ann: {text}")
    bob.open_app()
    bob.reads(*said)
    ann.browser.complaints()


def test_a_failing_server_is_tried_again(ann, bob, room):
    bob.act(do="home")
    ann.say("it was there all the time")
    room.chat.database.run("ALTER TABLE messages RENAME TO elsewhere")
    try:
        page = bob.open_app()
        page.until(lambda: page.one("#trouble").text == "The server does not answer. It is asked again in a moment.")
    finally:
        room.chat.database.run("ALTER TABLE elsewhere RENAME TO messages")
    # Nothing comes from the device meanwhile: the page asks by itself.
    bob.reads("it was there all the time")
    bob.browser.complaints()


def test_removing_the_app_leaves_the_room(ann, bob, room):
    token = bob.device_token
    bob.command("remove", APP)
    # The open connection tells the service.
    bob.next("removed", topic=APP)
    ann.say("Bob?")
    row = eventually(
        lambda: room.queue.run("SELECT * FROM push_queue WHERE device_token = ? AND status = 'refused'", token), timeout=PATIENCE,
        what="the refusal",
    )[0]
    assert row["reason"] == "Unregistered"
    dead = "SELECT dead_at FROM devices WHERE device_token = ?"
    eventually(lambda: room.queue.run(dead, token)[0]["dead_at"], what="a token that is dead")
    eventually(lambda: room.chat.users() == {"Ann"}, what="a room with Ann alone")
    ann.say("Nobody else is here")
    ann.app().one("#members", "In the room: Ann")
    # Installed again, the app has another token, and joins as at first.
    bob.command("install", bob.bundle)
    bob.command("allow", APP, "alert,badge,sound")
    assert eventually(lambda: bob.on_screen["token"], what="a token") != token
    bob.join("open sesame")
    assert bob.texts(bob.app()) == [], "what was said before they came is not theirs"
    ann.say("There you are")
    bob.reads("There you are")
    ann.browser.complaints()


def test_the_feedback_list_is_read(room, shared):
    """The tutorial's feedback.php: whoever is on the list leaves the room, though PushChat sent nothing to find out."""
    with listening_device(shared, APP) as device:
        user = {"udid": "ef" * 20, "token": device.token, "name": "Zoe", "code": "a room of her own"}
        assert room.chat.ask("api/join", user)[0] == 200 and "Zoe" in room.chat.users()
        device.stop()
        # The list has whole seconds, and this user joined within the last one.
        room.queue.run("UPDATE devices SET registered_at = '2026-01-01 00:00:00' WHERE device_token = ?", device.token)
        remove_app(device, APP)
        # Another provider of the app meets the ended registration.
        with Provider(shared, shared.provider_certificate(APP), topic=APP) as other:
            assert other.push(device.token).status == 410
        eventually(lambda: "Zoe" not in room.chat.users(), timeout=PATIENCE, what="a room without Zoe")
    (dead,) = room.queue.run("SELECT evidence FROM devices WHERE device_token = ?", device.token)
    assert dead["evidence"].startswith("feedback of localhost:")
    assert room.queue.run("SELECT * FROM push_queue WHERE device_token = ?", device.token) == []


def test_the_forms_of_the_tutorial_work(ann, room):
    evil = "<img src=x onerror=document.title='owned'>"
    page = room.browser
    page.driver.switch_to.window(room.home)
    page.driver.get(room.chat.url + "test_join.html")
    page.one("[name=name]").send_keys("Mallory")
    page.one("[name=code]").send_keys("open sesame")
    page.one("button").click()
    page.one("[role=status]", "You are in the room.")
    page.driver.get(room.chat.url + "test_message.html")
    page.one("[name=text]").send_keys(evil)
    page.one("button").click()
    page.one("[role=status]", "Everybody else in the room is told.")
    ann.reads(evil)
    assert "owned" not in page.driver.title
    # The made-up token is refused, and is nobody's death: a wrong environment looks the same.
    ann.say("Hello Mallory")
    row = eventually(
        lambda: room.queue.run("SELECT reason FROM push_queue WHERE device_token LIKE '0123%' AND status = 'refused'"),
        timeout=PATIENCE, what="the refusal",
    )[0]
    assert row["reason"] == "BadDeviceToken" and "Mallory" in room.chat.users()
    page.driver.switch_to.window(room.home)
    page.driver.get(room.chat.url + "test_leave.html")
    page.one("button").click()
    page.one("[role=status]", "You have left the room.")
    page.one("a").click()
    page.one("button").click()
    page.one("[role=status]", "nobody with this udid is in a room: join first")
    page.complaints()


UDID, TOKEN = "ab" * 20, "cd" * 32
JOIN = {"udid": UDID, "token": TOKEN, "name": "Eve", "code": "another room"}


@pytest.mark.parametrize(
    "command, body, status, words",
    [
        ("join", {**JOIN, "udid": "short"}, 400, "udid must be 40"),
        ("join", {**JOIN, "token": TOKEN[1:]}, 400, "token must be"),
        ("join", {name: JOIN[name] for name in ("udid", "token", "code")}, 400, "name is missing"),
        ("join", {**JOIN, "languages": "de_CH"}, 400, "languages must be"),
        ("join", {**JOIN, "name": "   "}, 400, "name is empty"),
        ("join", {**JOIN, "name": "x" * 65}, 400, "name is longer than 64 bytes"),
        ("join", {**JOIN, "name": "a\u0007b"}, 400, "control character"),
        ("join", {**JOIN, "code": "ü" * 65}, 400, "code is longer than 128 bytes"),
        ("message", {"udid": UDID, "text": "x"}, 404, "join first"),
        ("message", {"udid": UDID, "text": "x" * 8001}, 413, "text is longer than 8000 bytes"),
        ("message", {"udid": UDID, "text": " \n "}, 400, "text is empty"),
        ("message", {"udid": UDID, "text": "a\u0000b"}, 400, "zero byte"),
        ("message", b"[" * 20000, 400, "not a JSON object"),
        ("message", b"x" * 40000, 413, "longer than 32768 bytes"),
        ("update", {"udid": UDID}, 400, "token, languages or read is missing"),
        ("update", {"udid": UDID, "read": "now"}, 400, "read is a number"),
        ("leave", {"udid": UDID}, 404, "join first"),
    ],
)
def test_wrong_requests_are_explained(room, command, body, status, words):
    answer, said, _ = room.chat.ask(f"api/{command}", body)
    assert (answer, words in said["error"]) == (status, True), said


def test_other_sites_are_refused(room):
    assert room.chat.ask("api/join", JOIN, Host="evil.example")[0] == 421
    assert room.chat.ask("api/join", JOIN, Origin="http://evil.example")[0] == 403
    assert room.chat.ask("api/join", JOIN, kind="text/plain")[0] == 415
    assert room.chat.ask("api/messages")[0] == 401
    _, _, headers = room.chat.ask("test_join.html")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_proxy_may_serve_the_app_under_a_path(room, tmp_path):
    site = "https://chat.example.com"
    chat = Server(tmp_path, room.queue.path)
    try:
        chat.start(0, "--site", f"{site}/")
        leave = ("api/leave", {"udid": UDID})
        # It asks by the name that it was asked for, or by the server's own.
        assert chat.ask(*leave, Host="chat.example.com", Origin=site)[0] == 404
        assert chat.ask(*leave, Origin=site)[0] == 404
        assert chat.ask(*leave, Host="chat.example.com", Origin="http://chat.example.com")[0] == 403
        assert chat.ask(*leave, Host="other.example.com", Origin=site)[0] == 421
    finally:
        chat.close()
    for wrong in ("chat.example.com", f"{site}/chat", "https://"):
        refused = subprocess.run(
            [PUSHCHAT, "--queue", room.queue.path, "--site", wrong], capture_output=True, text=True, timeout=PATIENCE,
        )
        assert refused.returncode == 64 and "--site must be an address without a path" in refused.stderr


def test_returning_to_a_full_room_takes_no_second_place(room):
    def join(number, token=None):
        user = {"udid": f"{number:040x}", "token": f"{token or number:064x}", "name": "Eve", "code": "a full room"}
        return room.chat.ask("api/join", user)[0]

    assert [join(number) for number in range(1, 51)] == [200] * 50
    assert join(51) == 409
    # The same app, which has made up another udid.
    assert join(52, token=7) == 200
    for number in (*range(1, 7), *range(8, 51), 52):
        assert room.chat.ask("api/leave", {"udid": f"{number:040x}"})[0] == 200


def test_messages_are_rate_limited(room):
    assert room.chat.ask("api/join", JOIN)[0] == 200
    answers = [room.chat.ask("api/message", {"udid": UDID, "text": "spam"}) for _ in range(40)]
    refused = [answer for answer in answers if answer[0] != 200]
    assert refused and all((status, headers["retry-after"]) == (429, "10") for status, _, headers in refused)
    # Page after page, from the first on.
    bearer = {"authorization": f"Bearer {UDID}"}
    _, said, _ = room.chat.ask("api/messages?since=0", **bearer)
    assert len(said["messages"]) == 40 - len(refused) and said["members"] == ["Eve"] and not said["more"]
    _, rest, _ = room.chat.ask(f"api/messages?since={said['messages'][-2]['id']}", **bearer)
    assert rest["messages"] == said["messages"][-1:]
    assert room.chat.ask("api/leave", {"udid": UDID})[0] == 200
    # Nobody is left, and nothing of what they said.
    assert room.chat.database.run("SELECT * FROM messages WHERE code = 'another room'") == []


def test_the_app_passes_the_check(tmp_path):
    herald("check", "--bundle", BUNDLE, "--strict")
    payload = tmp_path / "payload.json"
    payload.write_text(json.dumps({
        "aps": {"alert": {"title": "New message", "body": "Ann: hi", "action-loc-key": "REPLY"}, "badge": 1, "sound": "beep.caf"}, "message": 1,
    }))
    assert "beep.caf" in herald("check", payload, "--bundle", BUNDLE, "--strict").stdout
    subprocess.run([ROOT / "Examples" / "PushChat" / "make-beep", tmp_path / "beep.caf"], check=True, timeout=PATIENCE)
    assert (tmp_path / "beep.caf").read_bytes() == (BUNDLE / "beep.caf").read_bytes()


def test_a_server_without_a_relay_explains_the_remedy(room, tmp_path):
    def failure(*options):
        command = [PUSHCHAT, "--database", tmp_path / "chat.db", "--port", "0", *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == 1, result
        return result.stderr

    queue = tmp_path / "nothing.db"
    assert f"start `herald relay run --database sqlite://{queue}` first" in failure("--queue", queue)
    port = room.chat.url.rsplit(":", 1)[1].strip("/")
    taken = failure("--queue", room.queue.path, "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}" in taken and len(taken.splitlines()) == 1
