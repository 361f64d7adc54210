"""What the documents say of the tests and of the reasons is so."""

import pathlib
import re

import pytest

from service import ROOT

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
