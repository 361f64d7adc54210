"""The files for GitHub Actions: their steps run here as they do there, where nothing is fetched."""

import os
import pathlib
import re
import subprocess
import sys

import yaml

from service import HERALD, PATIENCE, ROOT

FILE = ROOT / "Examples" / "CI" / "github-actions.yml"
EXAM = ROOT / "Examples" / "CI" / "exam.yml"
#: Commands that fetch or install: everything is here already.
STUBS = {
    "apt-get": "echo apt-get $@", "sha256sum": "test \"$*\" = '--check --ignore-missing SHA256SUMS.amd64'",
}
#: A job: each step has the variables that the steps before it have written. The namespace ends what they have started.
JOB = """
set -e
ip link set lo up
for step in "$1"/*.step; do
  set -a; . "$GITHUB_ENV"; set +a
  bash --noprofile --norc -eo pipefail "$step"
done
"""


def fetched_release(text):
    """The line of a step that fetches a release; there is no network, and the addresses must be those of a release."""
    line = re.search(r"^curl .*$", text, re.M)[0]
    version = subprocess.run([ROOT / "scripts" / "version"], check=True, capture_output=True, text=True).stdout.strip()
    assert f'"$RELEASE_URL/herald_{version}-1_amd64.deb" "$RELEASE_URL/SHA256SUMS.amd64"' in line
    return line


def test_the_steps_for_github_actions_pass(tmp_path):
    (job,) = yaml.safe_load(FILE.read_text())["jobs"].values()
    steps = [step for step in job["steps"] if "run" in step and "if" not in step]
    assert job["container"] == "debian:12" and len(steps) == 5
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, words in STUBS.items():
        (tools / name).write_text(f"#!/bin/sh\n{words}\n")
        (tools / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    for number, step in enumerate(steps):
        text = step["run"]
        if step["name"] == "Install Herald":
            text = text.replace(fetched_release(text), "")
        (work / f"{number}.step").write_text(text)
    # GitHub's file has NAME=value without quotation marks.
    variables = tmp_path / "env"
    variables.write_text("")
    user = ["--map-root-user"] if os.geteuid() else []
    result = subprocess.run(
        ["unshare", *user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", JOB, "job", work],
        cwd=work, capture_output=True, text=True, timeout=2 * PATIENCE,
        env={
            "PATH": f"{tools}:{HERALD.parent}:{os.environ['PATH']}", "GITHUB_ENV": str(variables), "RUNNER_TEMP": str(work),
            "LANG": "C.UTF-8", **job["env"],
        },
    )
    logs = "".join(file.read_text() for file in work.glob("*.log"))
    assert result.returncode == 0, result.stdout + result.stderr + logs
    named = dict(line.split("=", 1) for line in variables.read_text().splitlines())
    assert {"APNS_HOST", "APNS_KEY_FILE", "APNS_DEVICE_TOKEN", "CONSOLE_URL", "CONSOLE_TOKEN"} <= named.keys()
    # No value needs quotation marks, which GitHub would keep.
    assert not any(set("'\" $") & set(value) for value in named.values())


def test_the_exam_for_github_actions_passes_and_compares(tmp_path):
    (job,) = yaml.safe_load(EXAM.read_text())["jobs"].values()
    install, _, examine = (step["run"] for step in job["steps"] if "run" in step)
    assert fetched_release(install) and job["container"]["image"] == "debian:12"
    (tmp_path / "venv/bin").mkdir(parents=True)
    # A link to a virtual environment's link would leave that environment.
    (tmp_path / "venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "venv/bin/python").chmod(0o755)
    (tmp_path / "adapter.py").write_bytes((pathlib.Path(__file__).parent / "exam_sender.py").read_bytes())
    examine = examine.replace("--name sender", "--name sender --only expiration,collapse")

    def run(text):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
        environment = os.environ | {"PATH": f"{HERALD.parent}:{os.environ['PATH']}"}
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE)
        assert result.returncode == 0, result.stdout + result.stderr

    baseline = "--baseline exam-baseline.json"
    assert baseline in examine
    run(examine.replace(baseline, "") + "\nmv exam/exam-sender.json exam-baseline.json")
    run(examine)
    assert {path.name for path in (tmp_path / "exam").iterdir()} == {f"exam-sender.{kind}" for kind in ("html", "xml", "json")}
