"""The page of a device's screen in Chromium, on a simulated device: its content, buttons and languages."""

import re
import time

import pytest
from screen_page import action, activity, app, device, notification, record, words
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

GAME = dict(
    title="Game Request", subtitle="Table 4", body="Bob wants to play poker", buttons=["Close", "Play"],
)


def test_a_banner_shows_all_its_texts_and_its_buttons_work(page, agent):
    agent.show(notifications=[notification(**GAME)], banner="n1")
    banner = page.one(".banner")
    assert [banner.find_element("css selector", part).text for part in (
        ".card-app", ".card-title", ".card-subtitle", ".card-body",
    )] == ["PushChat", "Game Request", "Table 4", "Bob wants to play poker"]
    assert [button.text for button in page.all(".banner .deed")] == ["Close", "Play"]
    page.one(".banner .deed", "Play").click()
    assert agent.done() == {"do": "tap", "id": "n1"}
    page.one(".banner .deed", "Close").click()
    assert agent.done() == {"do": "close", "id": "n1"}
    ActionChains(page.driver).move_to_element(page.one(".banner .card-body")).click().perform()
    assert agent.done() == {"do": "tap", "id": "n1"}
    agent.show(notifications=[], banner=None)
    page.gone(".banner")


def test_markup_in_a_payload_is_text(page, agent):
    evil = '<img src=x onerror="document.title=\'owned\'"><b>bold</b><script>document.title="owned"</script>'
    agent.show(
        apps=[app(name=evil, launch_image=evil, opened_with={evil: evil}, refused=evil, state="foreground")],
        foreground="com.example.pushchat", languages=["en", evil], available_languages=[evil],
        notifications=[notification(
            title=evil, subtitle=evil, body=evil, app=evil, thread=evil, buttons=[evil, evil], language=evil,
            actions=[action(identifier=evil, title=evil)],
        )],
        banner="n1", lock_alert="n1", log=[{"time": 1.5, "text": evil}], activities=[activity(content={evil: evil}, title=evil)],
        sounds=[{"id": "s1", "topic": "com.example.pushchat", "name": evil, "critical": False, "volume": None, "time": 1.5}],
        connection={"state": "offline", "reason": evil, "retry_in": None}, questions=["com.example.pushchat"],
    )
    agent.note(record(topic=evil, apns_id=evil, body=evil, payload=evil, because=[evil], language=evil))
    page.one(".entry summary").click()
    for part in (".entry-text", ".entry-more dd", ".entry-more .payload", ".card-title", ".card-subtitle", ".card-body", ".deed", ".reason", ".lines bdi", ".log-list span", ".payload"):
        assert "<b>bold</b>" in page.one(part).get_property("textContent"), part
    assert "owned" not in page.driver.title
    assert page.all("#page b, #page script, #page [onerror]") == []


def test_the_locked_screen_has_the_time_and_a_slider(page, agent):
    agent.show(locked=True)
    assert ":" in page.one(".lock-time .big").text
    slider = page.one(".slider input")
    assert slider.accessible_name == "slide to unlock"
    slider.click()
    assert agent.done() == {"do": "unlock"}
    # A notification from before the screen was locked is only listed.
    agent.show(notifications=[notification(slider="Play", buttons=[], place="lock screen", title="Game Request")])
    page.one(".lock-list .card")
    page.one(".slider input", "slide to unlock")
    agent.show(lock_alert="n1")
    slider = page.one(".slider input", "Play: PushChat, Game Request")
    assert page.one(".slider-words").text == "Play"
    ActionChains(page.driver).drag_and_drop_by_offset(slider, 40, 0).perform()
    ActionChains(page.driver).move_to_element_with_offset(slider, -130, 0).click_and_hold().move_by_offset(
        150, 0).move_by_offset(130, 0).release().perform()
    assert agent.done() == {"do": "tap", "id": "n1"}
    page.until(lambda: slider.get_property("value") == "0")
    slider.send_keys(Keys.ARROW_RIGHT * 3)
    assert slider.get_property("value") == "75" and agent.deeds.empty()
    slider.send_keys(Keys.ARROW_RIGHT)
    assert agent.done() == {"do": "tap", "id": "n1"}
    slider.send_keys(Keys.ENTER)
    assert agent.done() == {"do": "tap", "id": "n1"}
    assert page.all(".banner") == [] and page.all(".home-screen") == []


def test_a_replaced_notification_changes_in_place(page, agent):
    agent.show(locked=True, notifications=[notification(id="n2", body="second"), notification(body="first", thread="a")])
    page.until(lambda: len(page.all(".card")) == 2)
    first = page.one("[data-id='n1']")
    page.run("arguments[0].querySelector('.card-close').focus()", first)
    agent.show(notifications=[
        notification(body="changed", thread="a", replaced=True), notification(id="n2", body="second"),
    ])
    page.until(lambda: first.find_element("css selector", ".card-body").text == "changed")
    assert first.find_element("css selector", ".mark").text == "Updated"
    assert page.run("return document.activeElement.closest('.card').dataset.id") == "n1"
    assert [card.get_attribute("data-id") for card in page.all(".card")] == ["n1", "n2"]


def test_notifications_of_a_thread_are_grouped_newest_first(page, agent):
    shown = [notification(id=f"n{number}", thread=thread, body=f"{thread} {number}")
             for number, thread in ((5, "lena"), (4, None), (3, "lena"), (2, "lena"), (1, None))]
    agent.show(locked=True, notifications=shown)
    page.until(lambda: len(page.all(".stack")) == 2)
    assert [body.text for body in page.all(".card-body")] == ["lena 5", "None 4"]
    more = page.one(".rest", "2 more from PushChat")
    assert more.get_attribute("aria-expanded") == "false"
    more.click()
    page.until(lambda: [body.text for body in page.all(".card-body")] == ["lena 5", "lena 3", "lena 2", "None 4"])
    assert more.get_attribute("aria-expanded") == "true"


def test_what_is_urgent_lies_on_top_of_its_group(page, agent):
    levels = ["passive", None, "time-sensitive", "active", "critical"]
    agent.show(notifications=[
        notification(id=f"n{number}", thread="a", interruption=level, body=str(level)) for number, level in enumerate(levels)
    ])
    page.one(".pill").click()
    page.until(lambda: [body.text for body in page.all(".card-body")] == ["critical"])
    page.one(".rest").click()
    page.until(lambda: [body.text for body in page.all(".card-body")] == ["critical", "time-sensitive", "None", "active", "passive"])


def test_interruption_levels_are_labelled(page, agent):
    levels = ["passive", "active", "time-sensitive", "critical"]
    agent.show(locked=True, notifications=[notification(id=level, thread=level, interruption=level) for level in levels])
    page.until(lambda: len(page.all(".card")) == 4)
    assert [" ".join(mark.text for mark in card.find_elements("css selector", ".level")) for card in page.all(".card")] == [
        "Quiet", "", "Time sensitive", "Critical",
    ]


def test_actions_are_buttons_and_ask_for_text(page, agent):
    actions = [
        action(identifier="yes", title="Ja"), action(identifier="no", title="Löschen", destructive=True),
        action(identifier="answer", title="Antworten", text_input=True),
    ]
    agent.show(notifications=[notification(actions=actions, language="de")], banner="n1")
    page.one(".banner .deed", "Ja").click()
    assert agent.done() == {"do": "act", "id": "n1", "action": "yes"}
    destructive = page.one(".banner .deed", "Löschen (destructive)")
    assert "destructive" in destructive.get_attribute("class")
    assert destructive.get_attribute("lang") == "de"
    page.one(".banner .deed", "Antworten").click()
    field = page.one(".reply input", "Antworten")
    page.until(lambda: page.driver.switch_to.active_element == field)
    page.press("Bis <b>gleich</b>")
    agent.show(log=[{"time": time.time(), "text": "something else happened"}])
    page.one(".log-list span", "something else happened")
    assert field.get_property("value") == "Bis <b>gleich</b>"
    assert page.driver.switch_to.active_element == field
    page.press(Keys.ENTER)
    assert agent.done() == {"do": "act", "id": "n1", "action": "answer", "text": "Bis <b>gleich</b>"}
    page.gone(".reply")
    page.one(".banner .deed", "Antworten").click()
    page.one(".reply")
    page.press(Keys.ESCAPE)
    page.gone(".reply")
    assert agent.deeds.empty()


def test_a_question_is_answered_for_each_kind(page, agent):
    agent.show(apps=[app(permission=None)], questions=["com.example.pushchat"])
    dialog = page.one(".question")
    assert dialog.accessible_name == "“PushChat” would like to send you notifications"
    page.until(lambda: page.driver.switch_to.active_element == dialog)
    page.one(".question label", "Badges").click()
    page.one(".question .deed", "Allow").click()
    assert agent.done() == {"do": "permit", "topic": "com.example.pushchat", "allow": ["alert", "sound"]}
    page.one(".question .deed", "Don’t allow").click()
    assert agent.done() == {"do": "permit", "topic": "com.example.pushchat", "allow": []}
    # The page below is inert until the question is answered or postponed.
    assert page.run("return document.querySelector('.under').inert")
    page.press(Keys.ESCAPE)
    page.gone(".question")
    page.one(".app-list summary").click()
    page.one(".small", "Answer its request").click()
    page.one(".question")
    agent.show(apps=[app(permission=None, wants=["sound"])])
    page.until(lambda: [label.text for label in page.all(".question label")] == ["Sounds"])
    agent.show(apps=[app()], questions=[])
    page.gone(".question")


@pytest.mark.parametrize("name, before, words, deed", [
    ("locked", False, "Locked", {"do": "lock"}),
    ("locked", True, "Locked", {"do": "unlock"}),
    ("network", True, "Network", {"do": "set", "network": False}),
    ("saving", False, "Save power", {"do": "set", "saving": True}),
    ("muted", True, "Mute", {"do": "set", "muted": False}),
    ("focus", False, "Focus", {"do": "set", "focus": True}),
])
def test_switches(page, agent, name, before, words, deed):
    agent.show(**{name: before})
    switch = page.one("[role=switch]", words)
    page.until(lambda: switch.get_attribute("aria-checked") == str(before).lower())
    switch.send_keys(Keys.SPACE)
    assert agent.done() == deed
    # It shows what the device is, not what was asked of it.
    assert switch.get_attribute("aria-checked") == str(before).lower()
    agent.show(**{name: not before})
    page.until(lambda: switch.get_attribute("aria-checked") == str(not before).lower())


def test_a_language_replaces_the_list_and_the_list_has_an_order(page, agent):
    agent.show(locked=True, time=1_699_999_980, languages=["de", "ar"])
    page.one("#language").send_keys("French")
    assert agent.done() == {"do": "set", "languages": ["fr"]}
    agent.show(languages=["fr"], time=1_699_999_980)
    page.until(lambda: page.one(".lock-time").get_attribute("lang") == "fr")
    assert page.one(".lock-time").text.endswith("22:13\nmardi 14 novembre")
    # The device's own time zone counts, not the browser's.
    agent.show(time=1_699_999_980, time_zone="Asia/Tokyo")
    page.until(lambda: page.one(".lock-time").text.endswith("7:13\nmercredi 15 novembre"))
    page.one(".languages summary").click()
    page.one("#other-language").send_keys("pt-BR", Keys.ENTER)
    assert agent.done() == {"do": "set", "languages": ["fr", "pt-BR"]}
    agent.show(languages=["fr", "pt-BR"])
    page.until(lambda: [name.text for name in page.all(".language-name")] == ["French (fr)", "Brazilian Portuguese (pt-BR)"])
    page.one(".languages .small", "First: pt-BR first").click()
    assert agent.done() == {"do": "set", "languages": ["pt-BR", "fr"]}
    page.one(".languages .small", "Remove: fr").click()
    assert agent.done() == {"do": "set", "languages": ["pt-BR"]}


@pytest.mark.parametrize("language", ["de", "zh-Hans"])
def test_the_device_speaks_its_own_language_and_tags_it(page, agent, language):
    own = words(language)
    agent.show(
        languages=[language], words=own, locked=True, questions=[],
        notifications=[notification(
            id="n1", interruption="critical", replaced=True, slider=own["view"], language="en", title="Hello", body="word " * 200,
        )],
        lock_alert="n1", activities=[activity(state="stale", stale_date=1.0)],
    )
    page.until(lambda: page.one("#screen").get_attribute("lang") == language)
    assert page.one(".slider-words").text == own["view"] and page.one(".slider-words").get_attribute("lang") == language
    # Every text of the phone: its own words in its language, and an app's texts in the app's.
    assert spoken(page) == {
        (language, own["critical"]), (language, own["updated"]), (language, own["show_all"]), (language, own["view"]),
        (language, own["outdated"]), ("en", "Hello"), ("en", ("word " * 200).strip()),
    }
    agent.show(locked=False, lock_alert=None, banner="n1", activities=[], notifications=[
        notification(buttons=[own["close"], own["view"]], language="en", actions=[action(identifier="answer", title="Answer", text_input=True)]),
    ])
    page.one(".banner .deed", "Answer").click()
    page.one(".reply")
    assert spoken(page) == {
        (language, own["close"]), (language, own["view"]), (language, own["send"]), ("en", "Answer"), ("en", "Message received from Bob"),
    }
    page.one(".pill").click()
    agent.show(banner=None, questions=["com.example.pushchat"])
    page.one(".question")
    before, after = own["asks_permission"].split("{app}")
    assert {(language, text) for text in (
        own["notifications"], own["clear_all"], before.strip(), after.strip(), own["choose_kinds"], own["alerts"], own["badges"],
        own["sounds"], own["allow"], own["dont_allow"],
    ) if any(map(str.isalpha, text))} <= spoken(page)


def spoken(page):
    """The texts of the phone with their languages, without names, times and numbers."""
    return {tuple(pair) for pair in page.run(
        """
        const walker = document.createTreeWalker(document.getElementById("screen"), NodeFilter.SHOW_TEXT);
        const found = [];
        while (walker.nextNode()) {
          const { parentElement: element, data } = walker.currentNode;
          const isOurs = !element.closest("time, .lock-time, .status-bar, .app-icon, bdi") && /\\p{L}/u.test(data);
          const language = element.closest("[lang]").lang;
          if (isOurs && language !== "" && !element.closest(".facts, .quiet")) found.push([language, data.trim()]);
        }
        return found;
        """
    )}


def test_right_to_left(page, agent):
    agent.show(languages=["ar"], notifications=[notification(body="مرحبا", title="Hello", language="ar")], banner="n1")
    page.until(lambda: page.one("#screen").get_attribute("dir") == "rtl")
    direction = "return getComputedStyle(arguments[0]).direction"
    assert page.run(direction, page.one(".card-body")) == "rtl"
    assert page.run(direction, page.one(".card-title")) == "ltr"
    assert page.one(".card-texts").get_attribute("lang") == "ar"


def test_apps_have_icons_badges_and_switches_of_their_own(page, agent):
    agent.files["/api/apps/com.example.mail/icon"] = b"\x89PNG"
    agent.show(apps=[app(badge=3), app(topic="com.example.mail", name="Mail", state="not running")])
    icon = page.one(".app", "PushChat, Badges: 3")
    assert icon.find_element("css selector", ".badge").text == "3"
    assert icon.find_element("css selector", ".letter").text == "P"
    assert page.one(".app", "Mail").find_elements("css selector", ".badge") == []
    icon.click()
    assert agent.done() == {"do": "open", "topic": "com.example.pushchat"}
    page.one(".app-list summary").click()
    page.one(".small", "End PushChat").click()
    assert agent.done() == {"do": "end", "topic": "com.example.pushchat"}
    page.one(".app-list label", "Badges").click()
    assert agent.done() == {"do": "permit", "topic": "com.example.pushchat", "allow": ["alert", "sound"]}
    assert page.one(".token code").text == "a1" * 32
    agent.show(apps=[app(refused="the topic is not allowed", token=None)])
    page.one(".app-list .reason", "the topic is not allowed")


def test_an_open_app_shows_its_notification(page, agent):
    payload = {"aps": {"alert": "Hi"}, "acme": ["bang", "whiz"]}
    page.run("""
        window.launched = [];
        new MutationObserver(() => launched.push(document.querySelector(".launch-screen")?.textContent ?? ""))
            .observe(document.body, { childList: true, subtree: true });
    """)
    agent.show(apps=[app(opened_with=payload, launch_image="Default.png")], foreground="com.example.pushchat")
    page.until(lambda: any("Launch image: Default.png" in text for text in page.run("return launched")))
    assert '"bang",' in page.one(".payload").text
    page.gone(".launch-screen")
    page.one(".home-bar", "Home").click()
    assert agent.done() == {"do": "home"}


def test_an_app_opens_with_its_launch_image(page, agent):
    dot = b'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="60"><rect width="30" height="60" fill="#123456"/></svg>'
    agent.files["/api/apps/com.example.pushchat/images/Start me.svg"] = dot
    # It is there for less than a second: what comes is noted by the page itself.
    page.run("""
        window.loaded = [];
        document.addEventListener("load", ({ target }) => loaded.push([target.className, target.alt, target.naturalHeight]), true);
    """)
    agent.show(
        apps=[app(opened_with={}, launch_image="Start me.svg", launch_picture="Start me.svg")],
        foreground="com.example.pushchat",
    )
    page.until(lambda: ["launch-picture", "PushChat: launch image Start me.svg", 60] in page.run("return loaded"))
    page.gone(".launch-screen")


def test_the_status_bar_can_be_read_on_a_launch_image(chromium, agent):
    page = chromium.open(agent.url)
    page.run("""
        window.seen = [];
        new MutationObserver(() => {
          const bar = document.querySelector("[data-tone] > .status-bar");
          if (bar) seen.push(getComputedStyle(bar).color);
        }).observe(document.body, { attributes: true, subtree: true });
    """)
    for name, fill, colour in (("dark.svg", "#123456", "rgb(255, 255, 255)"), ("light.svg", "#eef", "rgb(20, 22, 28)")):
        agent.files[f"/api/apps/com.example.pushchat/images/{name}"] = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="60"><rect width="30" height="60" fill="{fill}"/></svg>'
        ).encode()
        agent.show(apps=[app(launch_image=name, launch_picture=name)], foreground="com.example.pushchat")
        page.until(lambda: colour in page.run("return seen"))
        page.gone(".launch-screen")
        agent.show(foreground=None)
        page.one(".home-screen")
    assert page.complaints() == []


def test_what_comes_to_an_open_app_is_shown_in_it(page, agent):
    agent.show(apps=[app(opened_with={"aps": {}})], foreground="com.example.pushchat")
    page.gone(".launch-screen")
    agent.show(apps=[app(opened_with={"aps": {}}, received={"apns_id": "2f7c", "time": 1.0, "payload": {"aps": {"alert": "Now"}}})])
    page.one(".opened h3", "Received while open")
    assert '"alert": "Now"' in page.one(".payload").text
    large = {"aps": {}, "n": [9007199254740993, 18446744073709551615]}
    agent.show(apps=[app(opened_with=large, received={"apns_id": "2f7e", "time": 1.5, "payload": large})])
    page.until(lambda: all(str(number) in page.one(".payload").text for number in large["n"]))
    assert all(str(number) in page.all(".payload")[-1].text for number in large["n"])
    page.until(lambda: "received a notification while it is open" in page.one("#polite").get_property("textContent"))
    agent.show(apps=[app(received={"apns_id": "2f7d", "time": 2.0, "payload": None})])
    page.one(".opened p", "Its payload is not a JSON object.")


def test_pending_notifications_and_the_style_of_an_app(page, agent):
    scheduled = {"id": "tea", "next": time.time() + 600, "title": "Tea", "body": "is ready", "every": "day 07:00"}
    agent.show(apps=[app(style="banner", pending=[scheduled], permission={"alerts": True, "badges": False, "sounds": True})])
    page.one(".app-list summary").click()
    entry = page.one(".pending li")
    assert "Tea: is ready" in entry.text and "every day 07:00" in entry.text
    page.one(".pending .small", "Cancel tea").click()
    assert agent.done() == {"do": "cancel", "topic": "com.example.pushchat", "notification": "tea"}
    style = page.one(".style select", "Alert style")
    assert style.get_property("value") == "banner"
    style.send_keys("Alert")
    assert agent.done() == {"do": "permit", "topic": "com.example.pushchat", "allow": ["alert", "sound"], "style": "alert"}
    agent.show(apps=[app(pending=[])])
    page.gone(".pending")


def test_a_token_and_a_curl_line_are_one_click_away(chromium, agent):
    agent.send_line = "curl -d '{\"aps\":{}}' -H 'apns-topic: {topic}' https://localhost/3/device/{token}"
    page = chromium.open(agent.url)
    page.run("window.copied = []; navigator.clipboard.writeText = async (text) => copied.push(text);")
    # A button says for two seconds that its text is copied.
    page.keep()
    page.one(".app-copy .small", "Copy token of PushChat").click()
    page.one(".app-copy .small", "Copied of PushChat")
    page.one(".app-copy .small", "Copy curl line for PushChat").click()
    line = f"curl -d '{{\"aps\":{{}}}}' -H 'apns-topic: com.example.pushchat' https://localhost/3/device/{'a1' * 32}"
    page.until(lambda: page.run("return copied") == ["a1" * 32, line])
    # Where the browser has no clipboard, the page copies as older ones do.
    page.run("navigator.clipboard.writeText = async () => { throw new Error(); }; document.execCommand = (word) => copied.push(word);")
    page.one(".app-copy .small", "Copy token of PushChat").click()
    page.until(lambda: page.run("return copied[2]") == "copy")
    assert page.complaints() == []


def test_a_small_page_marks_the_device_when_something_came(chromium, agent):
    page = chromium.open(agent.url, width=390, height=800)
    page.one(".tabs button", "Log").click()
    agent.show(notifications=[notification()])
    page.one(".tabs .news")
    page.one(".tabs [data-name=device]").click()
    page.gone(".tabs .news")
    agent.show(notifications=[notification(), notification(id="n2")])
    page.until(lambda: page.one(".pill").text == "2")
    assert page.all(".tabs .news") == []


def test_an_apps_own_page_is_framed_and_sandboxed(page, agent):
    agent.show(apps=[app(screen_url=f"{agent.url}assets/herald.svg")], foreground="com.example.pushchat")
    frame = page.one(".app-frame")
    assert "allow-top-navigation" not in frame.get_attribute("sandbox")
    agent.show(apps=[app(screen_url="javascript:document.title='owned'")])
    page.one(".opened")
    assert page.all("iframe") == [] and "owned" not in page.driver.title
    # The page refuses to be framed, by itself as well.
    assert any("frame-ancestors" in complaint for complaint in page.complaints())


def test_the_notification_centre(page, agent):
    agent.show(notifications=[notification()])
    pill = page.one(".pill", "Notification centre: 1")
    assert pill.get_attribute("aria-controls") is None
    agent.show(banner="n1")
    page.one(".banner")
    pill.click()
    page.one(".centre .card")
    # The banner would cover the centre's title.
    page.gone(".banner")
    assert pill.get_attribute("aria-controls") == "centre"
    agent.show(banner=None)
    assert pill.get_attribute("aria-expanded") == "true"
    page.one(".glass", "Clear all").click()
    assert agent.done() == {"do": "clear"}
    page.one(".centre .card-close", "Close: PushChat, Message received from Bob").click()
    assert agent.done() == {"do": "close", "id": "n1"}
    agent.show(notifications=[])
    page.one(".centre .none", "No notifications")
    page.press(Keys.ESCAPE)
    page.gone(".centre")


def test_live_activities(page, agent):
    now = time.time()
    going = activity(title="Line 3", content={"minutes": 4, "id": 9007199254740993}, attributes={"line": "3"}, stale_date=now - 60)
    agent.show(activities=[{**going, "state": "stale"}, activity(id="a2", state="ended", dismissal_date=now + 60)])
    page.until(lambda: len(page.all(".activity")) == 2)
    first, second = (card.text for card in page.all(".activity"))
    assert all(words in first for words in ("Outdated", "Line 3", "minutes\n4", "id\n9007199254740993", "line\n3", "outdated since"))
    assert "Ended" in second and "removed at" in second


def test_the_connection_state_is_shown_with_a_countdown(page, agent):
    agent.show(connection={"state": "offline", "reason": "the service closed the connection", "retry_in": 300})
    state = page.one(".connection")
    page.until(lambda: "Not connected" in state.text)
    assert "the service closed the connection" in state.text

    def left():
        return int(re.search(r"Trying again in (\d+) s", state.text)[1])

    first = left()
    assert 0 < first <= 300
    page.until(lambda: left() < first - 1)
    page.one(".sign[aria-label='Not connected to the service']")


def test_the_page_survives_a_restart_of_the_agent(chromium, agent):
    page = chromium.open(agent.url)
    agent.show(notifications=[notification()], banner="n1")
    page.one(".banner")
    agent.stop()
    notice = page.one(".lost")
    assert notice.text.startswith("The agent does not answer. This is what the device showed at ")
    # It lies on top of everything, and nothing beside it looks alive or can be pressed.
    on_top = "const { x, y, width } = arguments[0].getBoundingClientRect(); return document.elementFromPoint(x + width / 2, y + 5)"
    assert page.run(f"{on_top}.closest('.lost') === arguments[0]", notice)
    assert page.one(".connection .state").text == "Unknown"
    assert page.run("return getComputedStyle(document.querySelector('.connection .dot')).backgroundColor") == "rgb(138, 144, 160)"
    assert "brightness" in page.run("return getComputedStyle(document.querySelector('.phone')).filter")
    assert [part.get_attribute("class") for part in page.all("main > [inert]")] == ["panel", "phone"]
    agent.start_again()
    page.gone(".lost")
    assert page.all("main > [inert]") == [] and page.one(".connection .state").text == "Connected"
    agent.show(muted=True)
    page.one("[role=switch][aria-checked=true]", "Mute")
    page.complaints()


def test_a_refusal_of_the_agent_is_shown(chromium, agent):
    page = chromium.open(agent.url)
    # It is shown for eight seconds.
    page.keep()
    agent.refusal = "there is no notification n1 <any more>"
    page.one(".app").click()
    assert page.one(".told p").text == agent.refusal
    page.one(".told button", "Close this message").click()
    page.gone(".told")
    page.one(".app").click()
    page.one(".told p")
    # An action that the agent takes ends the complaint about the one before.
    agent.refusal = None
    page.one(".app").click()
    page.gone(".told")
    assert all("409" in complaint for complaint in page.complaints())
