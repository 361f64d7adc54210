"""`make soak`: which parts it plays for how long, and the table at its end. No part is played here."""

import types

import pytest

import soak


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Batches that take their time at once, and fail if their part is in the set; returns (part, first, rounds) of each."""
    batches, failing, now = [], set(), [0.0]

    def play(name, first, count):
        batches.append((name, first, count))
        seconds = count * soak.PARTS[name].seconds
        now[0] += seconds
        return {
            "part": name, "first": first, "rounds": count, "passed": name not in failing, "seconds": round(seconds),
            "figures": {"accepted": 10, "lost": 0, "growth": "+0.1"},
        }

    monkeypatch.setattr(soak, "play", play)
    monkeypatch.setattr(soak, "FOLDER", tmp_path)
    monkeypatch.setattr(soak, "commit", lambda: "abc1234")
    def monotonic():
        # Time passes between two readings of the clock, too.
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(soak, "time", types.SimpleNamespace(monotonic=monotonic))
    return batches, failing, now


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        soak.main(list(arguments))
    return end.value.code


def rows(output):
    return {line.split()[0]: line for line in output[output.index("PART ") :].splitlines()[1:]}


def test_all_parts_are_played_for_their_time_and_end_in_one_table(played, capsys):
    batches, _, now = played
    assert run() == 0
    table = rows(capsys.readouterr().out)
    assert list(table) == list(soak.PARTS)
    assert "passed" in table["crash"] and "0:15:00" in table["crash"] and "600" in table["crash"]
    # Six batches of 100; numbers are summed.
    assert "accepted 60, lost 0, growth +0.1" in table["crash"]
    assert [batch for batch in batches if batch[0] == "power"] == [("power", 0, 30)]
    assert [batch for batch in batches if batch[0] == "slopes"] == [("slopes", 0, 360)]
    assert now[0] == pytest.approx(60 * sum(part.minutes for part in soak.PARTS.values()), rel=0.01)


def test_a_time_for_all_is_shared(played):
    batches, _, now = played
    assert run("40m") == 0
    assert {name for name, *_ in batches} == set(soak.PARTS)
    assert 36 * 60 < now[0] < 44 * 60


def test_a_failing_part_ends_and_the_others_go_on(played, capsys):
    batches, failing, _ = played
    failing.add("binary-crash")
    assert run() == 1
    table = rows(capsys.readouterr().out)
    assert "FAILED" in table["binary-crash"]
    assert sum(name == "binary-crash" for name, *_ in batches) == 1
    assert list(table) == list(soak.PARTS) and "passed" in table["slopes"]
    assert "FAILED" in (soak.FOLDER / "table.txt").read_text()


def test_one_part_is_played_for_its_own_time_or_another(played):
    batches, _, now = played
    assert run("activation-crash") == 0
    assert {name for name, *_ in batches} == {"activation-crash"}
    assert now[0] == pytest.approx(300, abs=1)
    assert run("activation-crash", "10s") == 0
    assert batches[-1] == ("activation-crash", 0, 10)
    assert run("crashes") not in (0, 1) and run("activation-crash", "soon") not in (0, 1)
