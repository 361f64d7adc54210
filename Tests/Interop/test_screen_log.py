"""The log of the screen's page: one entry for each notification, from the agent's display log, beside the device's events."""

import json
import time

from screen_page import app, record
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

NOW = int(time.time())


def at(seconds):
    """A time of a display record."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(NOW + seconds))


def numbered(number, **changes):
    changes = {"received": at(number), "body": f"text {number}", **changes}
    return record(apns_id=f"{number:08}-0000-4000-8000-000000000001", **changes)


def entries(page):
    """Each entry on one line, without its time."""
    return [" | ".join(entry.text.split("\n")[1:]) for entry in page.all(".entry")]


def count(page):
    return page.run("return document.querySelectorAll('.entry').length")


def last(page):
    return page.run("return [...document.querySelectorAll('.entry-text')].at(-1).textContent")


def test_each_notification_is_one_entry_in_order(page, agent):
    agent.show(log=[{"time": NOW + 1.5, "text": "locked"}])
    agent.note(
        numbered(1, title="Game Request", badge={"before": 0, "after": 3}, sound="chime.aiff",
                 payload='{"aps":{"alert":"text 1"},"id":12345678901234567890,"id":1.50}'),
        numbered(2, body=None, push_type="background", priority=5, shown=False, place=None, background_launch=True,
                 because=["it is silent"], payload='{"aps":{"content-available":1}}'),
        numbered(3, body=None, shown=False, place=None, delivered_to_app=True, payload='{"aps":{"alert":{"title":"Lena","body":7}}}'),
    )
    page.until(lambda: entries(page) == [
        "PushChat | Banner | Game Request · text 1 | alert · priority 10 · 00000001",
        "locked",
        "PushChat | Silent | background · priority 5 · 00000002",
        "PushChat | In the open app | Lena · 7 | alert · priority 10 · 00000003",
    ], entries(page))
    assert page.all(".entry-more") == []
    page.one(".entry summary").click()
    facts = page.one(".entry-more").text.replace("\n", " ")
    for fact in ("apns-id 00000001-0000-4000-8000-000000000001", "Badge 0 → 3", "Sound chime.aiff", "Priority 10"):
        assert fact in facts
    # As it was sent, to the last digit and with a key that appears twice.
    assert '"id": 12345678901234567890,\n  "id": 1.50\n' in page.one(".entry-more .payload").text
    # A later response changes the entry, and does not add one.
    agent.note(numbered(1, response={"kind": "acted", "action": "reply", "text": "yes"}))
    page.until(lambda: "The user acted reply “yes”" in page.one(".entry-more").text.replace("\n", " "))
    assert len(page.all(".entry")) == 4


def test_the_log_is_filtered_cleared_and_saved(page, agent):
    agent.show(log=[{"time": NOW + 1.5, "text": "locked"}], apps=[app(), app(topic="com.example.mail", name="Mail")])
    agent.note(numbered(1), numbered(2, shown=False, place=None, because=["the user switched alerts off"]), numbered(3, topic="com.example.mail"))
    page.until(lambda: len(page.all(".entry")) == 4)
    kinds = Select(page.one("#log-kind"))
    for kind, found in (("Shown", ["text 1", "text 3"]), ("Not shown", ["text 2"]), ("Device events", ["locked"])):
        kinds.select_by_visible_text(kind)
        page.until(lambda: len(page.all(".entry")) == len(found) and all(map(str.__contains__, entries(page), found)), entries(page))
    kinds.select_by_visible_text("Everything")
    page.one("#log-words").send_keys("EXAMPLE.MAIL")
    page.until(lambda: len(page.all(".entry")) == 1)
    page.run("""
        const make = URL.createObjectURL;
        URL.createObjectURL = (file) => { file.text().then((text) => (window.saved = text)); return make.call(URL, file); };
        HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
    """)
    page.one(".log-head .small", "Export these entries").click()
    assert json.loads(page.until(lambda: page.run("return window.saved"))) == numbered(3, topic="com.example.mail")
    assert page.run("return savedAs") == "kitchen-phone-log.jsonl"
    page.one("#log-words").send_keys(Keys.BACKSPACE * 12)
    page.until(lambda: len(page.all(".entry")) == 4)
    page.one(".log-head .small", "Clear the log").click()
    page.gone(".entry")
    agent.note(numbered(4))
    page.until(lambda: len(page.all(".entry")) == 1)
    # A reload keeps it cleared: nothing is lost.
    page.driver.refresh()
    page.until(lambda: len(page.all(".entry")) == 1)
    page.one(".log-note .more", "Show them").click()
    page.until(lambda: len(page.all(".entry")) == 5)


def test_the_log_outlives_a_restart_of_the_agent(chromium, agent):
    page = chromium.open(agent.url)
    agent.show(log=[{"time": NOW, "text": "connected"}])
    agent.note(*(numbered(number) for number in range(1, 301)))
    page.until(lambda: count(page) == 201)
    # The newest is in view, and stays so while the user does not scroll.
    at_end = "const list = document.getElementById('log-list'); return list.scrollTop + list.clientHeight >= list.scrollHeight - 4"
    page.until(lambda: page.run(at_end))
    assert last(page) == "text 300"
    page.one(".log-note .more", "Show older ones").click()
    page.until(lambda: count(page) == 301)
    agent.stop()
    page.one(".lost")
    agent.records.append(numbered(301))
    agent.snapshot = {**agent.snapshot, "log": [], "display_log_revision": 2}
    agent.start_again()
    page.until(lambda: count(page) == 301 and last(page) == "text 301")
    page.run("document.getElementById('log-list').scrollTop = 0")
    agent.note(numbered(302))
    page.until(lambda: count(page) == 302)
    assert page.run("return document.getElementById('log-list').scrollTop") == 0
    page.complaints()


def test_the_log_does_not_ask_an_agent_that_counts_anew_without_a_break(page):
    asked = page.driver.execute_async_script(
        """
        const done = arguments[0];
        let asked = 0;
        // The page's own log asks for 200 records.
        window.fetch = (path) => path.endsWith("limit=400") && (asked += 1) <= 10
          ? Promise.resolve(new Response(JSON.stringify({ revision: 3, count: 500, records: [] })))
          : new Promise(() => {});
        import("/assets/display-log.js").then(({ DisplayLog }) => {
          const log = new DisplayLog(() => {});
          log.announced = 500;
          log.readOlder();
          setTimeout(() => done(asked), 500);
        });
        """
    )
    assert asked == 2
