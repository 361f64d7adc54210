"""The screen's page for everybody: by ear, by keyboard, without motion, in light and dark, on every width; and its sounds."""

import itertools
import struct
import time

import axe
import pytest
from screen_page import action, activity, app, notification, record
from selenium.webdriver.common.keys import Keys
from service import once_within
from sound_files import aiff, caf, wav

LONG = "Donaudampfschifffahrtsgesellschaft" * 12 + " 🌉🎉 你好世界 " + "wörd " * 700

APPS = [app(topic=f"com.example.app{number}", name=f"Application {number}", badge=number * 997) for number in range(9)]

FULL = {
    "apps": [*APPS, app()], "languages": ["en"],
    "notifications": [
        notification(title="Game Request", subtitle="Table 4", slider="Play", buttons=["Close", "Play"], actions=[
            action(identifier="yes", title="Accept"), action(identifier="no", title="Decline", destructive=True),
        ]),
        notification(id="n2", thread="a", interruption="time-sensitive", slider="View"),
        notification(id="n3", thread="b", interruption="critical"),
        notification(id="n4", thread="c", interruption="passive", body=LONG, title=LONG[:300], app=LONG[:100]),
        notification(id="n5", thread="c", replaced=True),
    ],
    "activities": [activity(title="Line 3", content={"minutes": 4}, attributes={LONG[:50]: LONG[:200]}, stale_date=1.0)],
    "sounds": [{"id": "s1", "topic": "com.example.pushchat", "name": LONG[:80], "critical": True, "volume": 0.5, "time": 1.5}],
    "log": [{"time": 1.5 + number, "text": LONG[:200]} for number in range(9)],
    "connection": {"state": "offline", "reason": LONG[:200], "retry_in": 5.0},
}

RECORDS = [
    record(apns_id="00000001-0000-4000-8000-000000000001", title=LONG[:200], because=[LONG[:200]], thread=LONG[:99]),
    record(apns_id="00000002-0000-4000-8000-000000000001", shown=False, place=None, topic=LONG[:200]),
]

SCREENS = {
    "locked": {"locked": True},
    "home": {},
    "banner": {"banner": "n1"},
    "banner of much text": {"banner": "n4"},
    "question": {"questions": ["com.example.app3"]},
    "app": {"foreground": "com.example.pushchat", "apps": [app(opened_with={"aps": {"alert": LONG}}, launch_image=LONG[:90])]},
    "nothing": {"apps": [], "notifications": [], "activities": [], "sounds": [], "log": []},
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing(chromium, agent, screen, dark):
    agent.note(*RECORDS)
    agent.show(**{**FULL, **SCREENS[screen]})
    for width in (1366,) if dark else (1366, 390):
        page = chromium.open(agent.url, width=width, dark=dark)
        page.run("document.querySelectorAll('.languages, .app-list li:last-child details, .entry details').forEach((part) => (part.open = true))")
        for tab in range(3 if width < 720 else 1):
            if width < 720:
                page.all(".tabs button")[tab].click()
            assert axe.barriers(page) == []
    assert page.complaints() == []


@pytest.mark.parametrize("width, height", [(320, 568), (768, 1024), (1024, 700), (1366, 768)])
@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_overflows(chromium, agent, screen, width, height):
    agent.note(*RECORDS)
    agent.show(**{**FULL, **SCREENS[screen]})
    page = chromium.open(agent.url, width=width, height=height)
    for tab in page.all(".tabs button") if width < 720 else [None]:
        if tab:
            tab.click()
        wide = page.run(
            """
            return [document.documentElement, ...document.querySelectorAll("#page *")].filter((element) => {
              const { overflowX, textOverflow } = getComputedStyle(element);
              return element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1 && overflowX !== "visible"
                && textOverflow !== "ellipsis" && element.localName !== "input"
                && getComputedStyle(element).clipPath === "none";
            }).map((element) => element.outerHTML.slice(0, 120))
            """
        )
        assert wide == []
        outside = page.run(
            """
            const edge = document.documentElement.clientWidth;
            return [...document.querySelectorAll("#page button, #page .card, #page .box")]
              .filter((element) => element.checkVisibility() && !element.closest("[inert]"))
              .filter((element) => element.getBoundingClientRect().right > edge + 1 || element.getBoundingClientRect().left < -1)
              .map((element) => element.outerHTML.slice(0, 120))
            """
        )
        assert outside == []
        # Beside the phone no scroll area lies in another, the page included.
        nested = page.run(
            """
            const scrolls = (element) => element.scrollHeight > element.clientHeight + 1
              && (element === document.documentElement || ["auto", "scroll"].includes(getComputedStyle(element).overflowY));
            return [...document.querySelectorAll(".panel, .panel *, .history, .history *")].filter(scrolls).filter((element) => {
              for (let outer = element.parentElement; outer; outer = outer.parentElement) if (scrolls(outer)) return true;
              return false;
            }).map((element) => element.outerHTML.slice(0, 120))
            """
        )
        assert nested == []


def test_a_hundred_notifications_of_four_kilobytes(page, agent):
    agent.show(locked=True, notifications=[
        notification(id=f"n{number}", thread=str(number), title=f"Title {number}", body=LONG) for number in range(100)
    ])
    page.until(lambda: len(page.all(".card")) == 100)
    firsts = itertools.count(1)

    def attempt():
        first = next(firsts)
        before = page.run("return performance.now()")
        agent.show(locked=True, notifications=[
            notification(id=f"n{number}", thread=str(number), title=f"Other {first} {number}", body=LONG)
            for number in range(first, first + 100)
        ])
        page.until(lambda: page.all(f"[data-id='n{first + 99}']"))
        return (page.run("return performance.now()") - before) / 1000

    once_within(15, attempt)
    more = page.one("[data-id='n7'] .more", "Show all")
    more.click()
    page.until(lambda: more.text == "Show less")
    assert page.one("[data-id='n7'] .card-body").text.strip() == LONG.strip()


def test_new_notifications_are_announced(page, agent):
    agent.show(notifications=[notification(title="Lena", body="Hi!", language="de")], banner="n1")
    page.until(lambda: page.one("#polite").get_property("textContent") == "PushChat. Lena. Hi!")
    assert page.one("#polite p").get_attribute("lang") == "de"
    assert page.one("#polite").get_attribute("aria-live") == "polite"
    assert page.one("#assertive").get_property("textContent") == ""
    urgent = notification(id="n2", title="Storm", interruption="critical")
    agent.show(notifications=[urgent, agent.snapshot["notifications"][0]], banner="n2")
    page.until(lambda: "PushChat. Storm" in page.one("#assertive").get_property("textContent"))
    assert page.one("#assertive").get_attribute("aria-live") == "assertive"
    assert "Storm" not in page.one("#polite").get_property("textContent")


def test_the_page_has_landmarks_and_one_heading(page, agent):
    agent.show(**FULL)
    assert [heading.text for heading in page.all("h1")] == ["Herald device"]
    assert len(page.all("main")) == 1
    assert [part.get_attribute("aria-label") for part in page.all("main > section")] == [
        "Switches", "The device's screen", "Sounds and log",
    ]
    assert page.run("return document.documentElement.lang") == "en"


def test_everything_is_reachable_by_keyboard_with_visible_focus(page, agent):
    agent.show(**{**FULL, "apps": [app()], "banner": "n1"})
    page.one(".banner")
    wanted = page.run(
        """
        return [...document.querySelectorAll("button, input, select, summary, [tabindex='0']")]
          .filter((element) => element.checkVisibility({ contentVisibilityAuto: true }) && !element.closest("[inert]"))
          .map((element, number) => (element.dataset.number = String(number)))
        """
    )
    assert len(wanted) >= 20
    reached, unseen = set(), []
    page.run("document.activeElement.blur()")
    for _ in range(len(wanted) + 4):
        page.press(Keys.TAB)
        number, width, words = page.run(
            """
            const { activeElement } = document;
            return [activeElement.dataset.number, parseFloat(getComputedStyle(activeElement).outlineWidth), activeElement.outerHTML];
            """
        )
        if number and width < 2:
            unseen.append(words[:100])
        reached.add(number)
    assert set(wanted) - reached == set()
    assert unseen == []


def test_escape_closes_overlays(page, agent):
    agent.show(notifications=[notification()], banner="n1")
    page.one(".banner .deed", "View").send_keys(Keys.ESCAPE)
    assert agent.done() == {"do": "close", "id": "n1"}
    agent.show(notifications=[], banner=None)
    page.gone(".banner")
    # The focus is where things go on, not lost at the page's beginning.
    assert page.run("return document.activeElement.id") == "screen"


def test_motion_follows_the_users_preference(chromium, agent):
    agent.show(notifications=[notification()], banner="n1")
    name = "return getComputedStyle(document.querySelector('.banner')).animationName"
    page = chromium.open(agent.url, reduced_motion=True)
    page.one(".banner")
    assert page.run(name) == "none"
    page.open(agent.url, reduced_motion=False)
    page.one(".banner")
    assert page.run(name) == "drop"


def played(**changes):
    return {"id": "s1", "topic": "com.example.pushchat", "name": "default", "critical": False, "volume": None, "time": time.time(), **changes}


# Sounds end in an audio context, and nothing is heard here. The test records the context's input.
RECORD = """
window.played = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function () {
  played.push(["file", this.buffer.sampleRate, this.buffer.numberOfChannels, this.buffer.length]);
  return start.apply(this, arguments);
};
const tone = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function () { played.push(["tone", this.frequency.value]); return tone.apply(this, arguments); };
"""


def test_sounds_are_played_once_enabled_and_always_written(page, agent):
    page.run(RECORD)
    # The name of a sound is on the screen for four seconds.
    page.keep()
    agent.files["/api/apps/com.example.pushchat/sounds/chime.aiff"] = aiff([0, 1000, -1000, 0] * 500)
    agent.show(sounds=[played(name="chime.aiff")])
    assert page.one(".ringing").text == "chime.aiff"
    page.one(".lines bdi", "chime.aiff")
    assert page.run("return played") == []
    page.one(".sound-off button", "Turn sound on").click()
    page.until(lambda: page.one("[role=switch]", "Sound in this browser").get_attribute("aria-checked") == "true")
    agent.show(sounds=[played(name="chime.aiff"), played(id="s2", name="chime.aiff", critical=True, volume=0.4)])
    page.until(lambda: page.run("return played") == [["file", 22050, 1, 2000]])
    assert "critical, volume 0.4" in page.one(".history .lines").text
    agent.show(sounds=[played(id="s2"), played(id="s3")])
    page.until(lambda: page.run("return played.slice(1)") == [["tone", 660], ["tone", 990]])
    # Two of them were there before: each is played once.
    agent.show(sounds=[played(id="s3")], muted=True)
    page.one("[role=switch][aria-checked=true]", "Mute")
    assert len(page.run("return played")) == 3
    page.one("[role=switch]", "Sound in this browser").click()
    page.one(".sound-off")


def test_a_missing_sound_is_the_default(chromium, agent):
    page = chromium.open(agent.url)
    page.run(RECORD)
    page.one(".sound-off button").click()
    page.gone(".sound-off")
    agent.show(sounds=[played(name="none.caf")])
    page.until(lambda: page.run("return played") == [["tone", 660], ["tone", 990]])
    page.complaints()


@pytest.mark.parametrize("name, file, rate, values", [
    ("AIFF", aiff([0, 16384, -32768]), 22050, [[0, 0.5, -1]]),
    ("CAF, little", caf(b"lpcm", 2, 16, struct.pack("<3h", 0, 16384, -32768)), 44100, [[0, 0.5, -1]]),
    ("CAF, big, stereo", caf(b"lpcm", 0, 24, b"\x40\0\0\xc0\0\0", 2), 44100, [[0.5], [-0.5]]),
    ("CAF, floats", caf(b"lpcm", 1, 32, struct.pack(">2f", 0.25, -1)), 44100, [[0.25, -1]]),
    # G.711: the values of the tables, of ±8159 and ±4096 steps.
    ("CAF, µ-law", caf(b"ulaw", 0, 8, b"\x80\x00\xff\x7f"), 44100, [[32124 / 32768, -32124 / 32768, 0, 0]]),
    ("WAV, A-law", wav(6, 8, b"\xaa\x2a\xd5\x55"), 8000, [[32256 / 32768, -32256 / 32768, 8 / 32768, -8 / 32768]]),
    ("WAV, 8 bits", wav(1, 8, b"\x80\xc0\x00\x80"), 8000, [[0, 0.5, -1, 0]]),
])
def test_sound_files_are_read(page, name, file, rate, values):
    assert decode(page, file) == {"rate": rate, "channels": values}


@pytest.mark.parametrize("file", [b"", b"FORM", b"caff" + b"\xff" * 40, b"RIFF" + b"\0" * 60, b"\x89PNG" + b"\0" * 50, aiff([])])
def test_an_invalid_sound_file_is_refused(page, file):
    assert decode(page, file) is None


def decode(page, file):
    return page.driver.execute_async_script(
        """
        const done = arguments[1];
        import("/assets/pcm.js").then(({ decode }) => {
          const sound = decode(new DataView(new Uint8Array(arguments[0]).buffer));
          done(sound && { rate: sound.rate, channels: sound.channels.map((samples) => [...samples]) });
        });
        """,
        list(file),
    )
