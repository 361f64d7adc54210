"""The aims of `make bench`: one table in code, the same in docs/performance.md, and a line for each figure that is short."""

import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By its file: the folder's other modules stay out of these tests' names.
_specification = importlib.util.spec_from_file_location("aims", ROOT / "Benchmarks" / "aims.py")
aims = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(aims)


def documented():
    """The aim of each figure in the table of docs/performance.md, and its row: figures that were measured, and the last column."""
    section = (ROOT / "docs" / "performance.md").read_text().split("\n## Aims\n")[1].split("\n## ")[0]
    table = section.split("|---|\n")[1].split("\n\n")[0]
    found = {}
    for row in table.splitlines():
        names, values, *measured, last = [column.strip() for column in row.strip("|").split("|")]
        names, values = re.findall(r"`(\w+)`", names), [float(value) for value in values.split(", ")]
        for place, name in enumerate(names):
            figures = [re.findall(r"\d+\.\d+", column) for column in measured]
            assert all(len(column) in (0, len(names)) for column in figures), row
            found[name] = values[place if len(values) == len(names) else 0], [float(column[place]) for column in figures if column], last
    return found


def test_the_document_has_every_aim_and_no_other():
    assert {name: aim for name, (aim, *_) in documented().items()} == aims.AIMS


def test_each_aim_that_is_not_reached_has_a_reason():
    for name, (aim, figures, last) in documented().items():
        assert figures, name
        if min(figures) < aim:
            assert re.search(r"(not reached[:.]|reached but for) \w+ \w+", last), name


def test_a_figure_is_short_by_cpu_time_where_there_is_one():
    figures = {
        "gateway": {"ratio": 0.5, "by_cpu": 1.01},
        "courier_p99": {"ratio": 0.79},
        "relay": {"ratio": 0.9, "by_cpu": 0.25},
        "courier_alone": {"ratio": 0.1},
    }
    assert [line.split()[:3] for line in aims.shortfalls(figures)] == [["relay", "0.25", "of"], ["courier_p99", "0.79", "of"]]
