"""The cost of growth: the tables of docs/cluster.md are what Benchmarks/growth.py prints, from costs that each name their source."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "Benchmarks" / "growth.py"


def printed(*devices):
    return subprocess.run([sys.executable, "-B", str(PROGRAM), *map(str, devices)], capture_output=True, text=True, check=True).stdout


def row(table, name):
    return next(line for line in table.splitlines() if line.startswith(f"| {name} |")).strip("| ").split(" | ")[1:]


def test_the_document_has_what_the_program_prints():
    document = (ROOT / "docs" / "cluster.md").read_text()
    for table in printed().strip().split("\n\n"):
        assert f"\n\n{table}\n" in document, f"python3 Benchmarks/growth.py prints another table:\n{table}"


def test_each_cost_says_what_it_is_and_where_it_comes_from():
    costs = json.loads((ROOT / "Benchmarks" / "costs.json").read_text())
    for name, one in costs["measured"].items():
        assert one["value"] > 0 and one["of"] and one["from"], name
    for name, one in costs["assumed"].items():
        assert one["value"] > 0 and one["of"], name


def test_growth_adds_nodes_and_then_cells():
    table = printed(10**4, 10**7, 2 * 10**7)
    nodes = [int(text.split(",")[0]) for text in row(table, "Herald nodes, NATS servers")]
    assert nodes[0] == 3 < nodes[1]
    assert row(table, "cells") == ["1", "1", "2"] and nodes[2] == 2 * nodes[1]
    # A cell of another cluster is as this one.
    assert len(set(row(table, "cores of a NATS server")[1:])) == 1
