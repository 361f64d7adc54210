"""The documents' statements about tests, reasons, links and packages."""

import ast
import importlib.machinery
import importlib.util
import itertools
import pathlib
import re
import subprocess

import pytest

import soak
from service import HERALD, ROOT

HERE = pathlib.Path(__file__).parent
COMPATIBILITY = (ROOT / "docs" / "compatibility.md").read_text()
THREATS = (ROOT / "docs" / "threat-model.md").read_text()
RELIABILITY = (ROOT / "docs" / "reliability.md").read_text()
DOCUMENTS = [
    *sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Tests" / "Payloads" / "README.md",
]
EXAMPLES = sorted((ROOT / "Examples").glob("*/README.md"))
#: Words in code: names of tests contain no backtick.
CODE = re.compile(r"`([^`\n]+)`")


class SwiftTests:
    """The Swift tests in the tree: targets, and the names of the tests of each suite. A file's name means all tests in it."""

    TYPE = re.compile(r"^(?=\S)(?:.* )?(?:struct|class|enum|actor|extension) (?:`([^`]+)`|(\w+))", re.M)
    TEST = re.compile(r"@Test\b(?:(?!@Test).)*?\bfunc (?:`([^`]+)`|(\w+))", re.S)

    def __init__(self, folder):
        self.targets = {path.name for path in folder.iterdir()}
        self.suites = {}
        for file in sorted(folder.glob("**/*Tests*/**/*.swift")):
            text = file.read_text()
            places = [(match.start(), match[1] or match[2]) for match in self.TYPE.finditer(text)]
            for match in self.TEST.finditer(text):
                suite = max((place for place in places if place[0] < match.start()), default=(0, file.stem))[1]
                for name in (suite, file.stem):
                    self.suites.setdefault(name, set()).add(match[1] or match[2])

    def fault(self, suite, test=None):
        if test is None:
            return None if suite in self.suites or suite in self.targets else f"there is no suite {suite}"
        return None if test in self.suites.get(suite, ()) else f"{suite} has no test {test!r}"


class PythonTests:
    """The tests of `Tests/Interop` and `Tests/Package`: pairs of class (or None) and function of each file."""

    def __init__(self, *folders):
        self.files = {file.name: set(self.tests(file)) for folder in folders for file in folder.glob("test_*.py")}

    @staticmethod
    def tests(file):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                yield None, node.name
            elif isinstance(node, ast.ClassDef):
                yield from ((node.name, part.name) for part in node.body if isinstance(part, ast.FunctionDef))

    def fault(self, file, names):
        """The fault in `file::names`, the part after the file's name; names are a test, a class, or both."""
        if file not in self.files:
            return f"there is no {file}"
        wanted = tuple(names.split("::")) if names else ()
        there = self.files[file]
        some = {(), *(pair for pair in there), *((test,) for _, test in there), *((suite,) for suite, _ in there if suite)}
        return None if wanted in some else f"{file} has no {names}"


SWIFT, PYTHON = SwiftTests(ROOT / "Tests"), PythonTests(HERE, ROOT / "Tests" / "Package")


def named_tests(text):
    """Each test that a text names, as `(words, fault)`; the fault is None if it exists.

    In code it is `test_x.py`, `test_x.py::test_y`, `test_x.py::TestZ::test_y`, `ATests` or `ATests/the name of a test`;
    behind the first of a file, in the same line, also `test_y` and `TestZ::test_y`.
    """
    for line in text.splitlines():
        file = None
        for words in CODE.findall(line):
            if match := re.fullmatch(r"(?:Tests/(?:Interop|Package)/)?(test_\w+\.py)(?:::(.+))?", words):
                file = match[1]
                yield words, PYTHON.fault(file, match[2])
            elif re.fullmatch(r"test_\w+|Test[A-Z]\w*(::test_\w+)?", words):
                yield words, PYTHON.fault(file, words) if file else f"{words} is named without its file"
            elif match := re.fullmatch(r"(\w+Tests)(?:/(.+))?", words):
                yield words, SWIFT.fault(*match.groups())
            elif "test_" in words and "::" in words:
                yield words, f"{words} is not the name of a test"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_test_named_by_a_document_exists(document):
    assert [fault for _, fault in named_tests(document.read_text()) if fault] == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("`test_docs.py`, `test_docs.py::test_every_test_named_by_a_document_exists`", 0),
        ("`test_model.py::TestOracle`, `TestOracle::test_an_unexpected_answer`, `test_an_unexpected_answer`", 0),
        ("`test_model.py::TestOracle::test_an_unexpected_answer`, `Tests/Interop/test_model.py`", 0),
        ("`CorpusTests`, `CorpusTests/every corpus has a target`, `DecisionTests/addresses hide their password`", 0),
        ("`test_nothing.py`", 1),
        ("`test_model.py::test_nothing`, `test_nothing`, `TestNothing::test_nothing`, `TestNothing`", 4),
        ("`test_model.py::TestShrinker::test_an_unexpected_answer`", 1),
        ("`test_docs.py`\n`test_an_unexpected_answer`", 1),
        ("`NothingTests`, `CorpusTests/nothing`, `NothingTests/every corpus has a target`", 3),
        ("`test_model.py:: test_x`, `model.py::test_an_unexpected_answer`", 2),
    ],
)
def test_a_false_name_of_a_test_is_found(text, faults):
    assert len([fault for _, fault in named_tests(text) if fault]) == faults


#: Names in capitals of HTTP/2 (RFC 9113 §6, §7), which need no backticks.
HTTP2_NAMES = set("""
COMPRESSION_ERROR ENABLE_PUSH END_STREAM FLOW_CONTROL_ERROR FRAME_SIZE_ERROR INTERNAL_ERROR PROTOCOL_ERROR PUSH_PROMISE REFUSED_STREAM RST_STREAM
STREAM_CLOSED WINDOW_UPDATE
""".split())
#: What stands for a figure or a text that somebody meant to write later.
PLACEHOLDER = re.compile(
    r"\b(?:TODO|FIXME|XXX+|TBD|TBA|TBC|WIP|[Ll]orem ipsum|to be (?:measured|filled in))\b|\?\?+|_{3,}|\{\{.*?\}\}|<[a-z][\w ]*>"
    r"|(?:…|\b[NX]+(?:[.,][NX]+)?|\bx(?:[.,]x+)+|\bxx+) ?(?:(?:ns|µs|ms|s|[KMG]iB|MB|GB|times)\b|%)"
)


def placeholders(text):
    """The placeholders in a document, as one line each; code means what it says."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    prose = re.sub(r"<!--.*?-->|``.+?``|`(?:[^`\n]|\n(?!\n))*`", "`x`", prose)
    found = [match[0] for match in PLACEHOLDER.finditer(prose)]
    found += [name for name in re.findall(r"(?<![\w/$])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w/])", prose) if name not in HTTP2_NAMES]
    # A word that is alone in its line: a row or a figure was to take its place.
    found += re.findall(r"^[A-Z]{4,}$", prose, re.M)
    # The heading of a table may have empty cells.
    for line in re.sub(r"^\|.*\n(?=\|---)", "", prose, flags=re.M).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        # A row of one bold text divides a table.
        is_empty = len(cells) > 1 and cells[0] and not cells[0].startswith("**") and not any(cells[1:])
        if line.startswith("|") and (is_empty or any(re.fullmatch(r"\?|…|\.\.\.", cell) for cell in cells)):
            found.append(line)
    return found


@pytest.mark.parametrize("document", [*DOCUMENTS, *EXAMPLES, ROOT / "CHANGELOG.md"], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_document_has_a_placeholder(document):
    assert placeholders(document.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "COURIER_SSL", "| `gateway` | COURIER_SSL |", "COURIER", "it takes …ms", "it takes … ms", "a share of …%",
        "it takes NN ms", "X.X µs", "x.xx times", "| `gateway` | |  |", "| gateway | ? |", "| gateway | … |", "TODO: measure", "since ???",
        "it took ____ s", "costs <figure> of it", "{{ratio}}", "to be measured", "TBD",
    ],
)
def test_a_placeholder_is_found(text):
    assert placeholders(f"Before.\n\n{text}\n\nAfter.\n") != []


@pytest.mark.parametrize(
    "text",
    [
        "`COURIER_SSL`", "```sh\necho $A_B … ms ???\n```", "| device | 1 | |", "| header | |\n|---|---|\n| `x` | y |", "RST_STREAM", "GOAWAY ends it",
        "Which ones? These.", "(`{{name}}`)", "<!-- not run: it needs systemd -->", "`herald send …` 3 ms", "| A10 | yes |",
    ],
)
def test_what_looks_like_a_placeholder_is_none(text):
    assert placeholders(f"Before.\n\n{text}\n\nAfter.\n") == []


def rows(text, width):
    """The rows of all tables of so many columns, without their headings."""
    tables = re.findall(rf"^\|(?:---\|){{{width}}}\n((?:\|.*\n)+)", text, re.M)
    return [line for table in tables for line in table.splitlines()]


def test_every_threat_and_every_promise_names_its_test():
    threats, promises = rows(THREATS, 2), rows(RELIABILITY, 4)
    assert len(threats) > 45 and len(promises) == 33
    unshown = [row[:60] for row in [*threats, *promises] if not any(named_tests(row))]
    assert unshown == []


METHODS = """
application:didFinishLaunchingWithOptions: application:didReceiveRemoteNotification:
application:didReceiveRemoteNotification:fetchCompletionHandler: application:didRegisterForRemoteNotificationsWithDeviceToken:
application:didFailToRegisterForRemoteNotificationsWithError: application:didReceiveLocalNotification: scheduleLocalNotification:
application:handleActionWithIdentifier:forRemoteNotification:completionHandler: UIMutableUserNotificationCategory
NSCurrentLocaleDidChangeNotification preferredLanguages applicationState applicationIconBadgeNumber registerForRemoteNotifications
""".split()


def test_the_chapter_about_apps_names_every_method_and_every_entrance():
    chapter = (ROOT / "docs" / "apps.md").read_text()
    phone = ROOT / "Sources" / "Device" / "HeraldPhone"
    swift = (phone / "LocalSocket" / "LocalApp.swift").read_text()
    (events,) = re.findall(r"public enum Event\b.*?\n    }\n", swift, re.S)
    functions = re.findall(r"public func (?!makeAsyncIterator)(\w+)\(", swift + (phone / "LocalSocket" / "LocalDevice.swift").read_text())
    requests = re.findall(r'case "(\w+)":', (phone / "LocalSocket" / "LocalConnection.swift").read_text())
    (programs,) = re.findall(r"enum ProgramEvent\b.*?\n}\n", (phone / "Phone" / "PhoneState.swift").read_text(), re.S)
    messages = re.findall(r'"(herald-\w+)"', (ROOT / "Sources" / "Device" / "HeraldScreen" / "Resources" / "app-frame.js").read_text())
    wanted = [
        *METHODS, *(f".{name}" for name in re.findall(r"^ +case (\w+)", events, re.M)), *(f"{name}(" for name in functions),
        *(f"`{name}`" for name in requests + re.findall(r"^ +case (\w+)$", programs, re.M)), *set(messages) - {"herald-hello"},
    ]
    assert len(wanted) > 50
    assert [words for words in wanted if words not in chapter] == []


def test_every_test_of_http2_requirements_is_in_the_compatibility_document():
    file = "test_http2_requirements.py"
    tests = re.findall(r"^ *def (test_\w+)\(", (HERE / file).read_text(), re.M)
    assert len(tests) > 50
    assert [test for test in tests if f"`{file}::{test}`" not in COMPATIBILITY] == []


def test_every_deliberate_difference_has_a_reason_and_names_its_test():
    differences = rows(COMPATIBILITY.split("## Deliberately different\n")[1], 4)
    assert len(differences) > 20
    assert [row for row in differences if len(row.split("|")) != 6 or "" in (cell.strip() for cell in row.split("|")[1:5])] == []
    assert [row[:60] for row in differences if not any(named_tests(row))] == []


def test_every_reliability_goal_has_a_row_and_every_part_of_soak_is_named():
    rows = re.findall(r"^\| (R\d+(?:–R\d+)?) \|", RELIABILITY, re.M)
    assert rows == [f"R{number}" for number in range(1, 34)]
    assert [part for part in soak.PARTS if f"`{part}`" not in RELIABILITY] == []


def test_every_reason_is_in_the_compatibility_document():
    table = (ROOT / "Sources" / "Shared" / "HeraldModel" / "RefusalReason.swift").read_text()
    reasons = re.findall(r'^    case \w+ = "(\w+)"$', table, re.M)
    assert len(reasons) > 30
    assert [reason for reason in reasons if f"`{reason}`" not in COMPATIBILITY] == []


def anchors(document):
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if path.parent.name != "Payloads"], ids=lambda path: path.stem)
def test_links_between_documents_have_a_target(document):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", document.read_text()):
        file = document.parent / target if target else document
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def test_every_page_that_a_message_or_a_unit_names_exists():
    """Also in a package: `scripts/stage` puts the pages where the units and messages name them."""
    files = [path for folder in ("Sources", "Packaging") for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path.read_text() for path in files if path.suffix in (".swift", ".service", ".yml", ".yaml", ".json")]
    pages = {page for text in texts for page in re.findall(r"\bdocs/[a-z/-]+\.md", text)}
    assert len(pages) > 5 and [page for page in pages if not (ROOT / page).is_file()] == []


def test_installing_names_the_packages_of_every_library_that_the_binary_needs():
    """System libraries only: a Swift runtime outside the binary comes with the toolchain, not with a package."""
    (line,) = re.findall(r"^apt-get install (.*lib.*)$", (ROOT / "docs" / "operations" / "installing.md").read_text(), re.M)
    needed = re.findall(r"NEEDED.*\[(.+)\]", output("readelf", "--dynamic", HERALD))
    places = dict(re.findall(r"^\s+(\S+) => (/\S+) ", output("ldd", HERALD), re.M))
    packages = set()
    for library in needed:
        place = pathlib.Path(places.get(library, "/lib64/" + library)).resolve()
        if "swift" not in str(place):
            # dpkg may list a file of /usr/lib as /lib.
            owners = output("dpkg", "--search", "*" + str(place).removeprefix("/usr"))
            packages |= {owner.split(":")[0] for owner in owners.splitlines()}
    assert {"libjemalloc2", "libnghttp2-14", "libc6"} <= packages
    # These two are on every Debian.
    assert packages - {"libc6", "libgcc-s1"} <= set(line.split())


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("This is NO test.", [1]),
        ("    /// That is\n    /// NO test, and those\n    /// were NO others.", [2, 3]),
        ('throw error("\\(name) is "\n    + "NO subject")', [2]),
        ("There is NO test. There also is NO other.\nIt is NO longer one, and NO more than that.", []),
        ("// There\n// are NO tests: `it is NO name`", []),
    ],
)
def test_a_negation_of_a_noun_is_refused(text, lines):
    """`X is no Y`, which `make lint` refuses in comments and texts."""
    loader = importlib.machinery.SourceFileLoader("check_language", str(ROOT / "scripts" / "check-language"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    assert [number for number, _ in module.negations(text.replace("NO", "no"))] == lines


# The operator's handbook.

OPERATIONS = [*sorted((ROOT / "docs" / "operations").glob("*.md")), ROOT / "docs" / "metrics.md"]
#: Programs whose messages the handbook quotes beside Herald's own.
FOREIGN = ("mosquitto_sub: ", "curl: ")


def texts_of_the_sources():
    """The string literals of the sources, joined where they are one message, with `…` for each value."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "Sources").glob("**/*.swift")))
    text = re.sub(r'"\s*\n\s*\+ "', "", text)
    text = re.sub(r"\\\n\s*", "", text)
    while (shorter := re.sub(r"\\\([^()]*(?:\([^()]*\)[^()]*)*\)", "…", text)) != text:
        text = shorter
    return re.sub(r"\\(.)", r"\1", text)


def quoted(page):
    """The texts that a page says Herald prints: the code in the first column of tables with `you see`, and after `the log says`."""
    text = page.read_text()
    for table in re.findall(r"^\| you see \|.*\n\|(?:---\|)+\n((?:\|.*\n)+)", text, re.M):
        for row in table.splitlines():
            cell = row.split(" | ")[0]
            if not cell.removeprefix("| ").startswith(FOREIGN):
                yield from CODE.findall(cell)
    yield from re.findall(r"\blog\b[^.`]* says `([^`]+)`", text)


@pytest.mark.parametrize("page", OPERATIONS, ids=lambda path: path.stem)
def test_every_message_that_the_handbook_quotes_is_in_the_sources(page):
    sources = texts_of_the_sources()
    pieces = [(words, piece.strip(" ,;:.")) for words in quoted(page) for piece in words.split("…")]
    assert [words for words, piece in pieces if len(piece) > 1 and piece not in sources] == []
    if page.stem == "troubleshooting":
        assert len(pieces) > 60


def test_a_message_that_nobody_prints_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("| you see | cause |\n|---|---|\n| log: `the store has gone fishing` | x |\n\nThen the log says `all is lost`.\n")
    assert list(quoted(page)) == ["the store has gone fishing", "all is lost"]
    assert not [words for words in quoted(page) if words in texts_of_the_sources()]


def test_every_command_of_herald_in_the_handbook_exists():
    options = {}
    for page in [*OPERATIONS, ROOT / "docs" / "operations.md"]:
        for command in CODE.findall(page.read_text()):
            if command.startswith("herald ") and not command.startswith("herald help"):
                words = command.split()[1:]
                names = tuple(itertools.takewhile(lambda word: re.fullmatch(r"[a-z]+", word), words))
                options.setdefault(names, set()).update(word for word in words if word.startswith("--"))
    assert len(options) > 15
    for names, used in options.items():
        text = output(HERALD, *names, "--help")
        assert [option for option in used if option not in text] == [], names


def test_the_example_of_sizing_adds_up():
    text = (ROOT / "docs" / "operations" / "sizing.md").read_text()
    values = {"devices": 100_000, "apps": 3, "waiting": 60_000, "rate": 2_000}
    assert all(f"`{name}`" in text for name in values)
    table = re.findall(r"^\| .* \| .* \| `([^`]+)`.* \| ([\d.]+) \|$", text, re.M)
    assert len(table) == 9
    for formula, shown in table:
        assert re.fullmatch(r"[\d.\s*/+()]+", re.sub(r"[a-z]+", lambda name: str(values[name[0]]), formula)), formula
        assert f"{eval(formula, {}, values):.2f}" == shown, formula
