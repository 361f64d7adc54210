"""A machine of its own, which systemd has booted from a fresh root: Debian without a toolchain, and without a network."""

import os
import pathlib
import re
import signal
import subprocess
import time

#: Seconds in which everything answers, on a busy machine too.
PATIENCE = 120
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


def eventually(condition, what):
    """Waits for a condition, and returns its value."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"still without {what}"
        time.sleep(0.1)
    return value


class Machine:
    """A booted root. Its commands run as root, like those of an administrator."""

    def __init__(self, root, log):
        self.root = pathlib.Path(root)
        self._log = open(log, "wb")
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--hostname=post"]
        self._nspawn = subprocess.Popen(
            [*command, f"--directory={root}", "--boot"], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )
        children = f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children"
        self._leader = eventually(lambda: pathlib.Path(children).read_text().split(), "an init process")[0]
        eventually(lambda: self.run("systemctl is-system-running", check=False).strip() in ("running", "degraded"), "a system")

    def stop(self):
        # systemd's signal for an orderly end; nspawn passes it on.
        self._nspawn.send_signal(signal.SIGTERM)
        try:
            self._nspawn.wait(timeout=PATIENCE)
        finally:
            self._nspawn.kill()
            self._nspawn.wait()
            self._log.close()

    def run(self, script, check=True):
        """The output of a shell script, which must succeed unless `check` is false."""
        result = subprocess.run(
            ["nsenter", "--target", self._leader, "--all", "sh", "-ec", script], env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        )
        assert result.returncode == 0 or not check, f"{script}\n{result.stdout}"
        return result.stdout

    def apt(self, words):
        return self.run(f"DEBIAN_FRONTEND=noninteractive apt-get --yes --no-install-recommends {words}")


class Herald:
    """The service and the device of a machine, used as docs/operations/installing.md says."""

    TOPIC = "com.example.chat"

    def __init__(self, machine):
        self.machine = machine

    def service(self, words):
        return self.machine.run(f"runuser -u herald -- herald {words} --config /etc/herald/herald.yaml")

    def device(self, words):
        return self.machine.run(f"runuser -u herald-agent -- herald agent {words} --folder /var/lib/herald-agent")

    def waiting(self):
        """The number of notifications that wait on the service."""
        return int(re.search(r"^notifications\s+(\d+) waiting", self.service("status"), re.M)[1])

    def shown(self):
        """The alerts that the device has shown, in order."""
        log = self.machine.root / "var/lib/herald-agent/shown.jsonl"
        return re.findall(r'"alert\W+([\w ]+)', log.read_text()) if log.exists() else []

    def send(self, token, alert):
        answer = self.service(
            f"send {token} --topic {self.TOPIC} --certificate /var/lib/herald/provider.pem --collapse-id '{alert}' --alert '{alert}'"
        )
        assert "200" in answer, answer


def become_device(herald):
    """Makes the machine a device of its own service, with a provider's certificate beside it; the device's token."""
    code = re.search(r"^code\s+(\S+)$", herald.service("device invite --name lamp"), re.M)[1]
    herald.machine.run(
        f"""
        HERALD_CODE={code} runuser -u herald-agent -- herald agent activate \
            --config /etc/herald/agent.yaml --service https://localhost:2191
        printf '%s\\n' 'app: [{herald.TOPIC}]' 'allow: alert,badge,sound' >> /etc/herald/agent.yaml
        systemctl enable --now herald-agent
        """
    )
    herald.service(f"provider certificate --topic {herald.TOPIC} --out /var/lib/herald/provider.pem")
    return eventually(lambda: re.search(r"^  token (\w{64})$", herald.device("show"), re.M), "a device token")[1]
