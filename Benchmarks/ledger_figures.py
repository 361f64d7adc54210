"""The figures of the ledger."""

import json
import subprocess

from machine import ON_SERVER_CORE, RELEASE, WORK

# Milliseconds in which a revocation list of 100,000 is to be written.
LIST_LIMIT = 1000


def ledger(_settings, report):
    """Enrolling, revoking and the trust part of a start with 1,000,000 devices, against the same with 2,000; of both, 1,000 are
    revoked. And a revocation that writes a list of 100,000, against its limit."""
    run = subprocess.run(
        [*ON_SERVER_CORE, str(RELEASE / "LedgerBench"), str(WORK / "ledger")], capture_output=True, text=True, timeout=600
    )
    if run.returncode:
        raise RuntimeError(f"LedgerBench failed: {(run.stderr or run.stdout).strip()[-300:]}")
    few, many, full = (json.loads(line) for line in run.stdout.splitlines())
    for work in ("enroll", "revoke", "start"):
        report.figure(f"ledger_{work}", [many[work]], [few[work]], "ms", "2,000", lower_is_better=True)
    report.figure("ledger_list", [full["revoke"]], [LIST_LIMIT], "ms", "limit", lower_is_better=True)
