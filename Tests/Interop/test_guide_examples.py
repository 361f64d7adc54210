"""The five examples of the payload reference, the listings of the programming guide, and the three states of the tutorial.

A provider that is not ours (curl), the service, a real agent: what `herald agent shown --json` says, and what the app hears.
"""

import json
import pathlib

import pytest

from agents import MONOPOLY, Agent, Local, curl
from service import eventually

APP = "com.example.monopoly"
FILES = pathlib.Path(__file__).parent.parent / "Payloads" / "files"
CATEGORY = "NEW_MESSAGE_CATEGORY"


class Guide(Agent):
    """A device with Monopoly.app, and a connection that is the app."""

    def __init__(self, service, folder):
        super().__init__(service, folder, service.device("guide")[0])
        self.certificate = service.provider_certificate(APP)
        self.start("--app", MONOPOLY, "--allow", "alert,badge,sound")
        self.device_token = self.token(APP)
        self.app = Local(folder)
        assert self.app.ask("register", topic=APP)["ok"]

    def ask(self, do, **members):
        answer = self.app.ask(do, **members)
        assert answer.get("ok"), answer
        return answer

    def home(self):
        """The home screen of an unlocked device on which nothing is shown, with the app in the background."""
        for do in ("unlock", "home", "clear"):
            self.ask(do)
        self.ask("state", topic=APP, state="background")
        self.ask("set", languages=["en"])
        self.app.events.clear()

    def push(self, payload, **fields):
        """Sends a payload; its identifier, and its display record."""
        id = curl(self.service, self.certificate, self.device_token, payload, topic=APP, **fields)
        return id, self.shown(id)

    def visible(self, id):
        """The identifier on the device of the alert that shows a notification."""
        (alert,) = [alert for alert in self.ask("device")["device"]["notifications"] if alert["apns_id"] == id]
        return alert["id"]

    def hears(self, id, why, **members):
        """Asserts that the app hears of a notification next."""
        event = self.app.event("notification")
        wanted = {"apns_id": id, "why": why, **members}
        assert {name: event.get(name) for name in wanted} == wanted

    def hears_nothing(self):
        """Asserts that no notification has come to the app: the answer to a request comes behind all events."""
        self.ask("languages")
        assert [event for event in self.app.events if event["event"] == "notification"] == []


@pytest.fixture(scope="module")
def phone(shared, tmp_path_factory):
    device = Guide(shared, tmp_path_factory.mktemp("guide") / "device")
    yield device
    device.app.close()
    device.close()


@pytest.fixture
def guide(phone):
    phone.home()
    return phone


def example(number):
    (path,) = FILES.glob(f"example-{number}-*.json")
    return path.read_bytes()


def opened(guide, payload, **wanted):
    """Sends a payload of the guide, asserts what is shown, and that View gives the app all of it."""
    before = guide.show()["apps"][0]["badge"]
    id, record = guide.push(payload)
    wanted = {"shown": True, "place": "banner", "sound": None, **wanted}
    assert record["badge"]["after"] == wanted.pop("badge", before)
    assert {name: record.get(name) for name in wanted} == wanted
    guide.hears_nothing()
    guide.ask("tap", notification=guide.visible(id))
    guide.hears(id, "opened", payload=json.loads(payload))
    return record


def test_example_1_an_alert_and_data_of_the_app(guide):
    opened(guide, example(1), body="Message received from Bob", title=None, buttons=["Close", "View"])


def test_example_2_a_title_and_a_localized_button(guide):
    wanted = {"title": "Game Request", "body": "Bob wants to play poker", "badge": 5}
    opened(guide, example(2), buttons=["Close", "Play"], **wanted)
    guide.home()
    guide.ask("set", languages=["fr"])
    opened(guide, example(2), buttons=["Fermer", "Jouer"], **wanted)


def test_example_3_an_alert_a_badge_and_a_sound(guide):
    opened(guide, example(3), body="You got your emails.", buttons=["Close", "View"], badge=9, sound="bingbong.aiff")


def test_example_4_a_localized_text_with_arguments(guide):
    """It is the guide's own listing of `loc-key`, too."""
    opened(guide, example(4), body="Jenna and Frank have invited you to play Monopoly", sound="chime.aiff")


def test_example_5_a_category_and_its_action(guide):
    """Also listing 7-2: the app hears which action the user chose."""
    payload = example(5)
    id, record = guide.push(payload)
    assert (record["body"], record["category"]) == ("Acme message received from Johnny Appleseed", CATEGORY)
    assert (record["badge"]["after"], record["sound"], record["buttons"][0]) == (3, "chime.aiff", "Close")
    action = record["actions"][0]["identifier"]
    text = {"text": "On my way"} if record["actions"][0].get("text_input") else {}
    guide.ask("act", notification=guide.visible(id), action=action, **text)
    guide.hears(id, "action", action=action, payload=json.loads(payload))
    response = guide.shown(id)["response"]
    assert (response["kind"], response["action"], response.get("text")) == ("acted", action, text.get("text"))


def test_listing_7_1_a_background_update_wakes_the_app(guide):
    payload = (FILES / "silent-push.json").read_bytes()
    id = curl(guide.service, guide.certificate, guide.device_token, payload, topic=APP, push_type="background", priority=5)
    guide.hears(id, "background", payload=json.loads(payload))
    guide.ask("done", topic=APP, apns_id=id, result="new data")
    record = guide.shown(id)
    assert (record["shown"], record["background"]) == (False, "new data")
    # The user sees no difference.
    assert guide.ask("device")["device"]["notifications"] == []


def test_listing_7_3_the_app_learns_the_preferred_languages_and_their_change(guide):
    guide.ask("set", languages=["de-CH", "fr"])
    assert guide.app.event("languages")["languages"] == ["de-CH", "fr"]
    assert guide.ask("languages")["languages"] == ["de-CH", "fr"]


PUSHCHAT = b'{"aps":{"alert":"Ann: Hello","sound":"chime.aiff"}}'


def test_state_1_an_open_app_gets_the_notification_and_nothing_is_shown(guide):
    guide.ask("state", topic=APP, state="foreground")
    id, record = guide.push(PUSHCHAT)
    assert (record["shown"], record["delivered_to_app"], record.get("sound")) == (False, True, None)
    assert guide.ask("device")["device"]["notifications"] == []
    guide.hears(id, "foreground", payload=json.loads(PUSHCHAT))


def test_state_2_another_screen_shows_an_alert_with_close_and_view(guide):
    id, record = guide.push(PUSHCHAT)
    assert (record["body"], record["buttons"], record["sound"]) == ("Ann: Hello", ["Close", "View"], "chime.aiff")
    guide.ask("close", notification=guide.visible(id))
    guide.hears_nothing()
    id, _ = guide.push(PUSHCHAT)
    guide.ask("tap", notification=guide.visible(id))
    guide.hears(id, "opened", payload=json.loads(PUSHCHAT))


def test_state_3_a_locked_device_shows_the_alert_and_unlocking_leads_into_the_app(guide):
    guide.ask("lock")
    id, record = guide.push(PUSHCHAT)
    assert (record["locked"], record["buttons"], record["sound"]) == (True, [], "chime.aiff")
    guide.hears_nothing()
    guide.ask("unlock")
    guide.hears(id, "opened", payload=json.loads(PUSHCHAT))
    assert eventually(lambda: guide.show()["apps"][0]["state"] == "foreground", what="the open app")
