"""The drawing of the console's pages: what stays, and what many lines of the journal cost."""

from console_service import ID, line
from selenium.webdriver import ActionChains
from test_console_page import complaints, show


def watch(chromium, console):
    """Opens the notifications with the mouse elsewhere than on a row, where it would hold them."""
    page = show(chromium, console, "/notifications", ".found tr")
    ActionChains(page.driver).move_to_element(page.one("#q")).perform()
    page.until(lambda: console.watchers == 1)
    return page


def tell_many(console, batch):
    """Tells sixty new lines, and the number of others."""
    items = [line(number, "delivered", 1, unique_id=ID.format(0x1000 + batch * 60 + number)) for number in range(60)]
    console.tell("lines", {"items": items, "more": 190})


def test_many_lines_cost_little(chromium, console):
    """The page draws at most sixty rows four times a second and counts the rest, however many lines come."""
    page = watch(chromium, console)
    rows, elements = (lambda: page.all(".found tbody tr")), (lambda: page.run("return document.getElementsByTagName('*').length"))
    tell_many(console, 0)
    page.one(".tools .main", "190 new")
    page.until(lambda: len(rows()) == 60)
    page.run(
        "window.draws = 0; window.began = performance.now();"
        "new MutationObserver(() => draws++).observe(document.querySelector('.found tbody'), {childList: true, subtree: true, characterData: true})",
    )
    first, last = elements(), 40
    for batch in range(1, last):
        tell_many(console, batch)
        # A look at the page, after each of which it may draw.
        assert len(rows()) <= 60
    page.one(".tools .main", "7,600 new")
    page.until(lambda: ID.format(0x1000 + last * 60 - 1)[-4:] in rows()[0].get_attribute("innerHTML"))
    # The last drawing but one shows the newest lines, and the last one all rows.
    page.until(lambda: len(rows()) == 60)
    drawn, seconds = page.run("return [draws, (performance.now() - began) / 1000]")
    assert 1 <= drawn <= seconds * 4 + 2
    assert abs(elements() - first) <= 60


def test_rows_of_a_burst_fill_the_window_until_somebody_reads(chromium, console):
    page = watch(chromium, console)
    # The time stands still, so that the burst does not end.
    page.run("const now = performance.now(); performance.now = () => now")
    rows = lambda: page.run("return document.querySelectorAll('.found tbody tr').length")
    is_first = lambda number: page.until(lambda: page.run("return document.querySelector('[data-row]').href").endswith(ID.format(0x1000 + number)))
    tell_many(console, 0)
    is_first(59)
    few = rows()
    assert 860 / 60 < few < 860 / 30
    page.run("window.rows = [...document.querySelectorAll('.found tbody tr')]")
    tell_many(console, 1)
    is_first(119)
    assert rows() == few and page.run("return rows.every((row, at) => row === document.querySelectorAll('.found tbody tr')[at])")
    page.press("j")
    tell_many(console, 2)
    page.one(".tools .main", "630 new")
    page.until(lambda: rows() == 60)
    is_first(119)
    assert page.run("return document.activeElement === rows[0].querySelector('a')")
    assert complaints(page) == []


def test_a_drawing_gives_the_same_page_after_any_other(chromium, console):
    """Random lists of texts and elements, of which some have a key: drawn after others and alone."""
    page = show(chromium, console)
    page.driver.execute_async_script("import(document.querySelector('script[src]').src.replace('main.js', 'dom.js')).then((dom) => Object.assign(window, dom)).then(arguments[0])")
    assert page.run("""
        let seed = 7;
        const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
        const some = (depth) => {
          const keys = [0, 1, 2, 3, 4, 5].map((key) => [random(99), key]).sort(([one], [other]) => one - other).map(([, key]) => key);
          return Array.from({ length: random(6) }, () => random(4) ? h(["p", "b"][random(2)], { ...(random(2) && { key: keys.pop() }), title: [null, "a", "b"][random(3)] }, depth ? some(depth - 1) : []) : `text ${random(9)}`);
        };
        const place = document.createElement("div");
        const faults = [];
        let before = new Map();
        for (let round = 0; round < 500; round += 1) {
          const wanted = some(2);
          const alone = document.createElement("div");
          render(place, wanted);
          render(alone, structuredClone(wanted));
          if (!place.isEqualNode(alone)) faults.push(`${place.innerHTML} is not ${alone.innerHTML}`);
          const now = new Map(wanted.map((child, at) => [child.attributes?.key !== undefined && `${child.tag} ${child.attributes.key}`, place.childNodes[at]]));
          now.delete(false);
          for (const [name, node] of now) if (before.has(name) && before.get(name) !== node) faults.push(`${name} was made anew`);
          before = now;
        }
        return faults;
    """) == []
