"""The drawing of the console's pages: what stays, and what many lines of the journal cost."""

from test_console_page import show


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
