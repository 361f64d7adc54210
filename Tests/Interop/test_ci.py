"""The file for GitHub Actions: its steps run here as they do there, on a machine of their own, where nothing is fetched."""

import os
import re
import subprocess

import yaml

from service import HERALD, PATIENCE, ROOT

FILE = ROOT / "Examples" / "CI" / "github-actions.yml"
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
            # There is no network; the addresses are those of a release.
            fetched = re.search(r"^curl .*$", text, re.M)[0]
            version = subprocess.run([ROOT / "scripts" / "version"], check=True, capture_output=True, text=True).stdout.strip()
            assert f'"$RELEASE_URL/herald_{version}-1_amd64.deb" "$RELEASE_URL/SHA256SUMS.amd64"' in fetched
            text = text.replace(fetched, "")
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
