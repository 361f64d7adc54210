"""Requests of schemathesis to every route of the console, with a token of each role."""

import json
import os
import subprocess

import pytest

from service import PATIENCE, ROOT, herald

CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance", "role_is_enough"]
#: A stream has no end, the description is checked by itself, and a token that is deleted makes no further requests.
EXCLUDED = ["--exclude-path", "/v1/events", "--exclude-path", "/openapi.yaml", "--exclude-name", "DELETE /v1/tokens/{id}"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_answered_above_a_role_or_otherwise_than_described(fresh, tmp_path):
    service = fresh().start()
    description = tmp_path / "openapi.yaml"
    description.write_text(herald("console", "description").stdout)
    make = lambda role: herald("console", "token", "--data", service.data, "--name", role, "--role", role, "--json").stdout
    tokens = {role: json.loads(make(role))["token"] for role in ("viewer", "sender", "admin")}
    result = subprocess.run(
        [
            str(ROOT / ".build" / "venv" / "bin" / "schemathesis"), "run", str(description),
            "--url", f"http://127.0.0.1:{service.listeners['console']}", "--checks", ",".join(CHECKS), *EXCLUDED,
            "--max-examples", "8", "--seed", "2190", "--phases", "examples,coverage,fuzzing", "--no-shrink", "--no-color",
            # The checks choose the tokens.
            "--generation-with-security-parameters", "false", "--generation-database", "none",
            "--request-timeout", str(PATIENCE), "--suppress-health-check", "all",
        ],
        capture_output=True, text=True, cwd=tmp_path, env={
            **os.environ, "PYTHONPATH": str(ROOT / "Tests" / "Interop"), "SCHEMATHESIS_HOOKS": "console_checks",
            "CONSOLE_TOKENS": json.dumps(tokens),
        },
    )
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
