"""The table of public senders in docs/exam.md, from recorded reports: of three runs, the worst outcome of each scenario.

    exam_table.py run [SENDER]…    examines each three times, all senders at once; the reports are in .build/exam
    exam_table.py write            writes the table of all recorded reports into docs/exam.md
"""

import collections
import concurrent.futures
import importlib.metadata
import json
import os
import re
import subprocess
import sys

from service import HERALD, ROOT

FOLDER = ROOT / ".build" / "exam"
PAGE = ROOT / "docs" / "exam.md"
BEGIN, END = "<!-- written by Tests/Interop/exam_table.py -->\n", "<!-- until here -->\n"
RUNS = 3
#: The signs of outcomes, the best first.
SIGNS = {"passed": "✓", "not applicable": "–", "unsupported": "–", "warned": "!", "failed": "✗", "could not be driven": "✗"}


def packaged(name):
    return f"{name} {importlib.metadata.version(name)}"


def senders():
    """The name of each sender, with its version, and its command in the folder Examples/Exam."""
    curl = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    send = (
        "herald send {token} --topic {topic} --key {key} --key-id {key_id} --team {team} --service {host}:{port} --ca {ca} "
        "--alert Hello"
    )
    return {
        packaged("aioapns"): ["--adapter", "python3 aioapns_adapter.py"],
        packaged("kalyke-apns"): ["--adapter", "python3 kalyke_adapter.py"],
        packaged("pyapns-client"): ["--adapter", "python3 pyapns_client_adapter.py"],
        f"curl {curl}": ["--adapter", "python3 curl_adapter.py"],
        "HeraldProvider": ["--adapter", "ExamSender"],
        "herald relay": ["--adapter", "python3 relay_adapter.py herald"],
        "herald send": ["--run", send],
    }


def examine(name, command):
    path = f"{HERALD.parent}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    for number in range(1, RUNS + 1):
        folder = FOLDER / f"{name}-{number}".replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("w") as log:
            subprocess.run(
                [HERALD, "exam", *command, "--name", name, "--out", folder], cwd=ROOT / "Examples" / "Exam",
                env=os.environ | {"PATH": path}, stdout=log, stderr=log,
            )
        print(folder.name, (folder / "log").read_text().splitlines()[-3:-2], flush=True)


def run(chosen):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for name, command in senders().items():
            if not chosen or any(name.startswith(word) for word in chosen):
                pool.submit(examine, name, command)


def recorded():
    """The reports of each sender."""
    found = collections.defaultdict(list)
    for path in sorted(FOLDER.glob("*/exam-*.json")):
        report = json.loads(path.read_text())
        found[report["sender"]].append(report)
    return {name: found[name] for name in senders() if name in found}


def worst(reports):
    """The worst outcome of each scenario in several runs."""
    order, outcomes = [*SIGNS], {}
    for report in reports:
        for result in report["results"]:
            former = outcomes.get(result["id"], result["outcome"])
            outcomes[result["id"]] = max(former, result["outcome"], key=order.index)
    return outcomes


def table(found):
    outcomes = {name: worst(reports) for name, reports in found.items()}
    ids = [result["id"] for result in next(iter(found.values()))[0]["results"]]
    lines = [f"| scenario | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    lines += [f"| `{id}` | {' | '.join(SIGNS[outcomes[name][id]] for name in found)} |" for id in ids]
    for verdict in ("lost in silence", "lost, told", "doubled without need", "lied", "late"):
        most = [max(sum(result["verdicts"].get(verdict, 0) for result in report["results"]) for report in found[name]) for name in found]
        lines.append(f"| {verdict} | {' | '.join(map(str, most))} |")
    lines += ["", "| sender | date | Herald | runs | command |", "|---|---|---|---|---|"]
    for name, reports in found.items():
        newest = max(reports, key=lambda report: report["date"])
        command = " ".join(word if " " not in word else f"'{word}'" for word in senders()[name])
        lines.append(f"| {name} | {newest['date'][:10]} | {newest['herald']} | {len(reports)} | `herald exam {command}` |")
    return "\n".join(lines) + "\n"


def write():
    text = PAGE.read_text()
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    assert len(pattern.findall(text)) == 1, f"{PAGE} lacks the place of the table"
    PAGE.write_text(pattern.sub(lambda _: BEGIN + "\n" + table(recorded()) + "\n" + END, text))


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:])
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)
