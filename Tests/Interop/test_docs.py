"""What the documents say of the tests and of the reasons is so."""

import pathlib
import re
import subprocess

import pytest

from service import HERALD, ROOT

HERE = pathlib.Path(__file__).parent
COMPATIBILITY = (ROOT / "docs" / "compatibility.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(\w+)`", COMPATIBILITY)))


@pytest.mark.parametrize("file, test", NAMED, ids=["::".join(pair) for pair in NAMED])
def test_a_test_that_a_document_names_is_there(file, test):
    assert re.search(rf"^ *def {test}\(", (HERE / file).read_text(), re.M)


def test_every_reason_is_in_the_document_of_compatibility():
    table = (ROOT / "Sources" / "HeraldModel" / "Rejection.swift").read_text()
    reasons = re.findall(r'^    case \w+ = "(\w+)"$', table, re.M)
    assert len(reasons) > 30
    assert [reason for reason in reasons if f"`{reason}`" not in COMPATIBILITY] == []


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md"], ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_installing_names_the_packages_of_every_library_that_the_binary_needs():
    """Those of the system. A runtime of Swift that is not in the binary is the toolchain's, and no package."""
    (line,) = re.findall(r"^apt-get install (.*lib.*)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
    needed = re.findall(r"NEEDED.*\[(.+)\]", output("readelf", "--dynamic", HERALD))
    places = dict(re.findall(r"^\s+(\S+) => (/\S+) ", output("ldd", HERALD), re.M))
    packages = set()
    for library in needed:
        place = pathlib.Path(places.get(library, "/lib64/" + library)).resolve()
        if "swift" not in str(place):
            # What is in /usr/lib may be on the list as /lib.
            owners = output("dpkg", "--search", "*" + str(place).removeprefix("/usr"))
            packages |= {owner.split(":")[0] for owner in owners.splitlines()}
    assert {"libjemalloc2", "libnghttp2-14", "libc6"} <= packages
    # These two are on every Debian.
    assert packages - {"libc6", "libgcc-s1"} <= set(line.split())


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
