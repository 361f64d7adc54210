"""`herald exam`: its controls get the verdicts that they must get, senders of others can be examined, and bad ones harm nobody.

The controls are `exam_sender.py`, which passes everything, and its mutants, each with one fault.
"""

import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

import httpx
import jwt
import pytest

from service import HERALD, PATIENCE, ROOT, eventually, free_port, herald

EXAMPLES = ROOT / "Examples" / "Exam"
GOOD = f"{sys.executable} {ROOT}/Tests/Interop/exam_sender.py"
#: The scenarios that each mutant does not pass, and neighbours that it does.
VERDICTS = {
    "new-connection": {"reuse": "failed", "one-device-429": "passed", "unregistered": "passed", "expiration": "passed"},
    "ignore-goaway": {"goaway": "failed", "goaway-two-step": "failed", "reuse": "passed", "refused-streams": "passed"},
    "new-id": {"silent-accepted": "warned", "busy": "passed", "expiration": "passed"},
    "new-token": {"reuse": "failed", "one-token": "failed", "expiration": "passed", "collapse": "passed"},
    "repeat-forever": {"broken": "failed", "one-device-429": "failed", "unregistered": "passed", "reuse": "passed"},
    "no-verify": {"foreign-authority": "failed", "foreign-name": "failed", "reuse": "passed", "expiration": "passed"},
    "claim-success": {"unregistered": "failed", "broken": "failed", "reuse": "passed", "goaway": "passed"},
    "hang": {"silent-stream": "failed", "slow": "passed", "reuse": "passed"},
    "close-at-429": {"one-device-429": "failed", "unregistered": "passed", "expiration": "passed"},
    "dead-at-403": {"invalid-token": "failed", "no-body": "failed", "unregistered": "passed", "one-token": "passed"},
}
#: Seconds of an exam on a busy machine.
LIMIT = 5 * PATIENCE
#: For a sender that hangs: less than usual.
IMPATIENT = ["--patience", "30s"]


class Exam:
    """One run of the command, and its reports."""

    def __init__(self, folder, *options, **more):
        self.folder = folder
        self.result = subprocess.run(
            [HERALD, "exam", *map(str, options), "--out", folder], capture_output=True, text=True, timeout=LIMIT, **more
        )
        self.code, self.text = self.result.returncode, self.result.stdout + self.result.stderr

    def file(self, kind):
        (path,) = self.folder.glob(f"exam-*.{kind}")
        return path

    @property
    def report(self):
        return json.loads(self.file("json").read_text())

    @property
    def outcomes(self):
        return {result["id"]: result["outcome"] for result in self.report["results"]}


def scenarios():
    """The identifiers of all scenarios."""
    return re.findall(r"^\s*([a-z0-9-]+)\s", herald("exam", "--list").stdout, re.M)


def control(folder, mutant, only):
    """An exam of the good sender (None) or of a mutant, with some scenarios."""
    more = IMPATIENT if mutant == "hang" else []
    return Exam(folder, "--adapter", f"{GOOD} {mutant or ''}", "--name", mutant or "good", "--only", ",".join(only), *more)


# Controls.


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_the_good_sender_passes_every_scenario(tmp_path, part):
    only = scenarios()[part::4]
    exam = control(tmp_path, None, only)
    assert exam.outcomes == dict.fromkeys(only, "passed"), exam.text
    assert exam.code == 0


@pytest.mark.parametrize("mutant", VERDICTS)
def test_a_mutant_fails_its_own_scenarios_and_no_others(tmp_path, mutant):
    exam = control(tmp_path, mutant, VERDICTS[mutant])
    assert exam.outcomes == VERDICTS[mutant], exam.text
    required = {result["id"] for result in exam.report["results"] if result["level"] == "required"}
    fails = any(outcome == "failed" and id in required for id, outcome in VERDICTS[mutant].items())
    lies = any(result["verdicts"].get("lied") for result in exam.report["results"])
    assert exam.code == (1 if fails or lies else 0), exam.text


def test_there_is_a_verdict_for_each_mutant():
    result = subprocess.run(f"{GOOD} nonsense", shell=True, capture_output=True, text=True, timeout=PATIENCE)
    assert re.findall(r"[a-z]+(?:-[a-z0-9]+)*", result.stderr.split("one of ")[1].split(", or")[0]) == [*VERDICTS]


def test_the_controls_get_the_same_verdicts_each_time(tmp_path, rounds):
    """All at once, so that the machine is busy."""
    everything = scenarios()
    wanted = {None: dict.fromkeys(everything, "passed")} | VERDICTS
    for number in rounds:
        with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
            exams = {
                mutant: pool.submit(control, tmp_path / f"{number}-{mutant}", mutant, verdicts) for mutant, verdicts in wanted.items()
            }
            for mutant, exam in exams.items():
                assert exam.result().outcomes == wanted[mutant], f"{exam.result().text}\n{rounds.again(number)}"


# Senders of others.


def adapter(name):
    return f"{sys.executable} {EXAMPLES}/{name}_adapter.py"


#: How each is driven, and what becomes of it in a few scenarios.
SENDERS = {
    "aioapns": (["--adapter", adapter("aioapns")], {"reuse": "passed", "unregistered": "passed", "busy": "warned"}),
    "kalyke": (["--adapter", adapter("kalyke")], {"reuse": "failed", "unregistered": "passed", "expiration": "passed"}),
    "pyapns-client": (["--adapter", adapter("pyapns_client")], {"unregistered": "passed", "expiration": "passed", "foreign-name": "passed"}),
    "curl": (["--adapter", adapter("curl")], {"reuse": "passed", "unregistered": "passed", "busy": "passed", "foreign-name": "passed"}),
    "HeraldProvider": (
        ["--adapter", HERALD.parent / "ExamSender"],
        {"reuse": "passed", "goaway": "passed", "unregistered": "passed", "refused-streams": "passed", "foreign-name": "passed"},
    ),
    "herald relay": (
        ["--adapter", f"{adapter('relay')} {HERALD}"],
        {"reuse": "passed", "goaway": "passed", "unregistered": "passed", "expiration": "passed"},
    ),
    "herald send": (
        [
            "--run",
            f"{HERALD} send {{token}} --topic {{topic}} --key {{key}} --key-id {{key_id}} --team {{team}}"
            " --service {host}:{port} --ca {ca} --alert exam",
        ],
        # It sends once.
        {"unregistered": "passed", "busy": "warned", "foreign-name": "passed", "one-token": "not applicable"},
    ),
}


@pytest.mark.parametrize("name", SENDERS)
def test_a_sender_is_examined(tmp_path, name):
    how, outcomes = SENDERS[name]
    exam = Exam(tmp_path, *how, "--name", name, "--only", ",".join(outcomes))
    assert exam.outcomes == outcomes, exam.text


class Hook(http.server.BaseHTTPRequestHandler):
    """A push server of a company: it answers at once, and sends each push once."""

    data, port, is_careful = None, None, True

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()
        trust = ssl.create_default_context(cafile=self.data / "exam-ca.pem")
        trust.check_hostname = self.is_careful
        (key,) = self.data.glob("AuthKey_*.p8")
        token = jwt.encode(
            {"iss": "EXAM000001", "iat": int(time.time())}, key.read_text(), "ES256", headers={"kid": key.stem.removeprefix("AuthKey_")}
        )
        headers = {"authorization": f"bearer {token}", "apns-topic": "com.example.exam", "apns-push-type": "alert"}
        with httpx.Client(http2=True, verify=trust, timeout=PATIENCE) as client:
            for device in order["tokens"]:
                with contextlib.suppress(httpx.HTTPError):
                    client.post(f"https://localhost:{self.port}/3/device/{device}", json=order["payload"], headers=headers)

    def log_message(self, *_):
        pass


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_careful", [True, False], ids=["careful", "careless"])
def test_a_hook_is_examined(tmp_path, is_careful):
    """Its status says nothing of a push, and it learns the authorities once."""
    port, data = free_port(), tmp_path / "data"
    handler = type("Handler", (Hook,), {"data": data, "port": port, "is_careful": is_careful})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        only = "foreign-authority,foreign-name,unregistered,long-device-tokens,reuse,expiration"
        options = ["--data", data, "--port", port, "--name", "hook", "--only", only, "--patience", "15s"]
        exam = Exam(tmp_path / "out", "--hook", f"http://127.0.0.1:{server.server_port}/", *options)
        known = (data / "exam-ca.pem").read_text()
        again = Exam(tmp_path / "again", "--hook", f"http://127.0.0.1:{server.server_port}/", *options, "--skip", "reuse,unregistered")
        server.shutdown()
    wanted = dict.fromkeys(["foreign-authority", "reuse", "unregistered", "long-device-tokens"], "passed")
    wanted |= {"foreign-name": "passed" if is_careful else "failed", "expiration": "not applicable"}
    assert exam.outcomes == wanted, exam.text
    # The next exam is one of the authorities that the server has read.
    assert again.outcomes == {id: wanted[id] for id in again.outcomes} and (data / "exam-ca.pem").read_text() == known, again.text


# Bad input.

#: Adapters that cannot be driven, and the sentence about each.
BAD = {
    "writes no JSON": ("sh -c 'echo hello; cat >/dev/null'", "not a line of JSON"),
    "ends at once": ("true", "ended with status 0|closed its standard input"),
    "is not there": ("/nonexistent/adapter", "ended with status 127|closed its standard input"),
    "fails": ("sh -c 'read line; echo what a pity >&2; exit 3'", "ended with status 3|closed its standard input"),
    "floods": ("cat /dev/zero", "floods"),
    "floods with lines": ("sh -c 'read line; exec yes \"{}\"'", "without id and outcome"),
    "names no push": ("""sh -c 'read line; read line; echo "{\\"id\\":99,\\"outcome\\":\\"failed\\"}"; cat >/dev/null'""", "nobody asked for"),
    "says no outcome": ("""sh -c 'read line; read line; echo "{\\"id\\":0,\\"outcome\\":\\"sent\\"}"; cat >/dev/null'""", "outcome"),
    "answers twice": (
        """sh -c 'read line; read line; a="{\\"id\\":0,\\"outcome\\":\\"failed\\"}"; echo "$a"; echo "$a"; cat >/dev/null'""", "says twice",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_adapter_gets_a_sentence_and_the_exam_goes_on(tmp_path, what):
    line, sentence = BAD[what]
    exam = Exam(tmp_path, "--adapter", line, "--name", "bad", "--only", "unregistered,expiration")
    assert exam.code == 1, exam.text
    assert exam.outcomes == {"unregistered": "could not be driven", "expiration": "could not be driven"}, exam.text
    for result in exam.report["results"]:
        assert re.search(sentence, result["findings"][0]["text"]), exam.text
    assert what != "fails" or "what a pity" in exam.text


def test_an_adapter_that_hangs_gets_a_sentence_and_the_exam_ends(tmp_path):
    exam = Exam(tmp_path, "--adapter", "sleep 1000", "--name", "bad", "--only", "expiration", "--patience", "2s")
    assert (exam.code, exam.outcomes) == (1, {"expiration": "could not be driven"}), exam.text
    assert "sent no push and wrote no line in 2 s" in exam.text


def test_a_scenario_that_the_sender_does_not_support_is_left_out(tmp_path):
    line = """sh -c 'read line; echo "{\\"unsupported\\":\\"collapse_id\\"}"; cat >/dev/null'"""
    exam = Exam(tmp_path, "--adapter", line, "--name", "poor", "--only", "collapse")
    assert exam.outcomes == {"collapse": "unsupported"}
    assert "collapse_id" in exam.text


# The command.


def test_reports_can_be_read_and_a_baseline_decides(tmp_path):
    former = Exam(tmp_path / "former", "--adapter", GOOD, "--name", "a & <b>", "--only", "busy-retry-after,expiration")
    assert former.code == 0, former.text
    suite = xml.etree.ElementTree.parse(former.file("xml")).getroot()
    assert [case.get("name") for case in suite.iter("testcase")] == ["busy-retry-after", "expiration"]
    assert "<script" not in former.file("html").read_text()
    assert former.report["sender"] == "a & <b>"

    worse = ["--adapter", f"{GOOD} repeat-forever", "--name", "worse", "--only", "busy-retry-after,expiration"]
    assert Exam(tmp_path / "alone", *worse).code == 0
    compared = Exam(tmp_path / "compared", *worse, "--baseline", former.file("json"))
    assert compared.code == 1 and "busy-retry-after" in compared.text
    same = Exam(tmp_path / "same", *worse, "--baseline", compared.file("json"))
    assert same.code == 0, same.text


@pytest.mark.parametrize(
    "options, words",
    [
        ([], "--adapter"),
        (["--adapter", "true", "--run", "true"], "--run"),
        (["--adapter", "true", "--only", "nonsense"], "nonsense"),
        (["--adapter", "true", "--skip", "nonsense"], "nonsense"),
        (["--adapter", "true", "--only", "reuse", "--skip", "reuse"], "no scenario"),
        (["--adapter", "true", "--patience", "1h"], "--patience"),
        (["--adapter", "true", "--port", "70000"], "--port"),
        (["--hook", "http://127.0.0.1:1/"], "--data"),
        (["--run", "send --all"], "{tokens}"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_gets_a_sentence(tmp_path, options, words):
    exam = Exam(tmp_path, *options)
    assert exam.code == 64 and words in exam.text, exam.text
    assert list(tmp_path.iterdir()) == []


def test_a_baseline_that_is_none_gets_a_sentence(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    exam = Exam(tmp_path, "--adapter", "true", "--baseline", tmp_path / "report.json")
    assert exam.code == 1 and "is not a report" in exam.text, exam.text
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    "name, options",
    [("SIGINT", []), ("SIGTERM", []), ("SIGTERM", ["--host", "localhost"]), ("SIGKILL", [])],
    ids=["Ctrl-C", "kill", "kill, without a private network", "kill -9"],
)
def test_a_signal_leaves_no_process_and_no_folder(tmp_path, name, options):
    # Below it is a socket, whose path is limited.
    mark, scratch = f"exam-{tmp_path.name}", pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    # The adapter has a child that ignores signals, holds the output open, and is in a session of its own.
    line = f"""sh -c 'setsid sh -c "trap : INT TERM; while :; do sleep 1; done" {mark} & touch {tmp_path}/started; sleep 1000' {mark}"""
    exam = subprocess.Popen(
        [HERALD, "exam", "--adapter", line, "--name", "hangs", "--out", tmp_path / "out", *options],
        env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )
    eventually((tmp_path / "started").exists, what="the adapter")
    # A terminal's Ctrl-C reaches all of its processes; `kill` reaches one.
    if name == "SIGINT":
        os.killpg(exam.pid, signal.SIGINT)
    else:
        exam.send_signal(signal.Signals[name])
    output, _ = exam.communicate(timeout=PATIENCE)
    assert exam.returncode != 0 and "Fatal" not in output, output
    eventually(lambda: not processes(mark, str(scratch)), what="the end of all processes")
    # A process that is killed cannot clean up: the page says so.
    for folder in scratch.glob("herald-exam-*") if name == "SIGKILL" else ():
        shutil.rmtree(folder)
    scratch.rmdir()


def processes(*marks):
    """The command lines of processes that have one of these words in them."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        if any(mark in line for mark in marks):
            found.append(line)
    return found


def test_the_page_lists_all_scenarios_with_their_levels():
    page = (ROOT / "docs" / "exam.md").read_text()
    listed = re.findall(r"^\s*([a-z0-9-]+)\s+(required|recommended|seen)\b", herald("exam", "--list").stdout, re.M)
    assert re.findall(r"^\| `([a-z0-9-]+)` \| (required|recommended|seen) \|", page, re.M) == listed
