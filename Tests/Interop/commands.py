"""Checks of commands that fail."""

import os
import signal
import subprocess

from service import HERALD, PATIENCE

PORTS = [
    "--api-port", "0", "--binary-port", "0", "--feedback-port", "0", "--device-port", "0", "--activation-port", "0",
    "--console-port", "0",
]


def one_line(result):
    """The one line on standard error of a command that failed."""
    # 77 and 78: a service that no restart can mend.
    assert result.returncode in (1, 77, 78), f"exit {result.returncode}: {result.stdout}{result.stderr}"
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert "Error Domain" not in lines[0] and "Optional(" not in lines[0] and "Fatal" not in lines[0]
    return lines[0]


def failed_start(data, *options, prefix=(), **more):
    """The result of a start that must fail. A start that succeeds is stopped, and its result says so."""
    process = subprocess.Popen(
        [*prefix, HERALD, "serve", "--data", data, *PORTS, *map(str, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
