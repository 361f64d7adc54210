"""The documents' statements about tests, reasons, links and packages."""

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
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(?:Test\w+::)?(\w+)`", COMPATIBILITY + THREATS + RELIABILITY)))
SUITES = sorted(set(re.findall(r"`(\w+Tests)`", THREATS + RELIABILITY)))


@pytest.mark.parametrize("file, test", NAMED, ids=["::".join(pair) for pair in NAMED])
def test_every_test_named_by_a_document_exists(file, test):
    assert re.search(rf"^ *def {test}\(", (HERE / file).read_text(), re.M)


def test_every_test_of_http2_requirements_is_in_the_compatibility_document():
    file = "test_http2_requirements.py"
    tests = re.findall(r"^ *def (test_\w+)\(", (HERE / file).read_text(), re.M)
    assert len(tests) > 50
    assert [test for test in tests if f"`{file}::{test}`" not in COMPATIBILITY] == []


def test_every_suite_named_by_a_document_exists():
    there = {path.name for path in (ROOT / "Tests").iterdir()}
    for file in ROOT.glob("Tests/**/*.swift"):
        there.add(file.stem)
        there |= set(re.findall(r"\b(?:struct|class|enum|actor) (\w+Tests)\b", file.read_text()))
    assert [suite for suite in SUITES if suite not in there] == []


def test_every_reliability_goal_has_a_row_and_every_part_of_soak_is_named():
    rows = re.findall(r"^\| (R\d+(?:–R\d+)?) \|", RELIABILITY, re.M)
    assert rows == [f"R{number}" for number in range(1, 6)] + ["R6–R9"] + [f"R{number}" for number in range(10, 25)]
    assert [part for part in soak.PARTS if f"`{part}`" not in RELIABILITY] == []


def test_every_reason_is_in_the_compatibility_document():
    table = (ROOT / "Sources" / "HeraldModel" / "RefusalReason.swift").read_text()
    reasons = re.findall(r'^    case \w+ = "(\w+)"$', table, re.M)
    assert len(reasons) > 30
    assert [reason for reason in reasons if f"`{reason}`" not in COMPATIBILITY] == []


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md"], ids=lambda path: path.name)
def test_links_between_documents_have_a_target(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_installing_names_the_packages_of_every_library_that_the_binary_needs():
    """System libraries only: a Swift runtime outside the binary comes with the toolchain, not with a package."""
    (line,) = re.findall(r"^apt-get install (.*lib.*)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
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
