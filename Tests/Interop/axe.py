"""axe, which looks for barriers in a page; from a wheel that has a current one, without the rest of that wheel."""

import importlib.util
import pathlib

_FOLDER = pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent
SCRIPT = (_FOLDER / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def barriers(page, rules=None):
    """The rules that a page breaks, each with the elements that break it; `rules` are rules or tags of axe."""
    if not page.run("return Boolean(window.axe)"):
        page.run(SCRIPT)
    report = page.driver.execute_async_script(
        "const done = arguments[1]; axe.run(document, {runOnly: arguments[0]}).then(done)", rules or RULES,
    )
    return [(problem["id"], [node["html"][:200] for node in problem["nodes"]]) for problem in report["violations"]]
