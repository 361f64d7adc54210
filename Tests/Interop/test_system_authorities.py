"""A machine that trusts no authority of its own, like a fresh Debian without `ca-certificates`."""

import subprocess

from commands import one_line
from est_client import invite
from private_mounts import in_private_mounts, mount
from service import HERALD, PATIENCE, TOPIC, herald


@in_private_mounts
def test_an_invitation_needs_none(shared, tmp_path):
    mount("/etc/ssl", "tmpfs")
    service = f"https://localhost:{shared.listeners['activation']}"
    herald("agent", "activate", "--service", service, "--code", invite(shared)["code"], "--folder", tmp_path / "lamp")
    assert (tmp_path / "lamp" / "identity.pem").exists()
    agent = subprocess.Popen(
        [HERALD, "agent", "run", "--folder", tmp_path / "lamp", "--app", TOPIC, "--allow", "alert", "--json"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert any('"token"' in line for line in agent.stdout)
    finally:
        agent.kill()
        agent.communicate(timeout=PATIENCE)


@in_private_mounts
def test_a_client_without_an_authority_says_what_is_missing(shared, tmp_path):
    mount("/etc/ssl", "tmpfs")
    result = herald(
        "send", "00" * 32, "--topic", TOPIC, "--certificate", shared.provider_certificate(TOPIC), "--alert", "Hello",
        "--service", f"localhost:{shared.listeners['api']}", check=False, cwd=tmp_path,
    )
    assert "this machine has no authorities to trust: install ca-certificates" in one_line(result)
