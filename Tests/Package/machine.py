"""A machine of its own, which systemd has booted from a fresh root: Debian without a toolchain, and without a network."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Seconds in which everything answers, on a busy machine too.
PATIENCE = 120
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


def eventually(condition, what):
    """Waits for a condition, and returns its value."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"still without {what}"
        time.sleep(0.1)  # pace: how often it is asked
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

    def wait_for_its_restart(self):
        """Waits until something in the machine restarts it, which ends it."""
        assert self._nspawn.wait(timeout=PATIENCE) == 133

    def stop(self):
        # All processes of the machine end with its first. The root ends, too: an orderly shutdown would save nothing.
        if self._nspawn.poll() is None:
            os.kill(int(self._leader), signal.SIGKILL)
        self._nspawn.wait(timeout=PATIENCE)
        self._log.close()

    def run(self, script, check=True, patience=PATIENCE):
        """The output of a shell script, which must succeed unless `check` is false."""
        result = subprocess.run(
            ["nsenter", "--target", self._leader, "--all", "sh", "-ec", script], env=ENVIRONMENT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience,
        )
        assert result.returncode == 0 or not check, f"{script}\n{result.stdout}"
        return result.stdout

    def listening(self):
        """The addresses that something listens on, as the kernel writes them."""
        lines = [line.split() for kind in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{self._leader}/net/{kind}").open()]
        return {line[1].split(":")[0] for line in lines if line[3] == "0A"}

    def apt(self, words):
        return self.run(f"DEBIAN_FRONTEND=noninteractive apt-get --yes --no-install-recommends {words}", patience=5 * PATIENCE)

    def install(self, *files):
        """Installs packages from files."""
        for file in files:
            (self.root / "var/cache" / file.name).write_bytes(file.read_bytes())
        return self.apt("--allow-downgrades install " + " ".join(f"/var/cache/{file.name}" for file in files))


def relabelled(packages, folder, version):
    """The same packages with another version."""
    files = []
    for name, file in packages.items():
        tree = folder / f"{name}-{version}"
        subprocess.run(["dpkg-deb", "--raw-extract", file, tree], check=True)
        control = tree / "DEBIAN" / "control"
        text = re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M)
        control.write_text(re.sub(r"\bherald \(= [^)]*\)", f"herald (= {version})", text))
        files.append(folder / f"{name}_{version}_other.deb")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, files[-1]], check=True, stdout=subprocess.DEVNULL)
    return files


class Herald:
    """The service and the device of a machine, used as docs/operations/installing.md says."""

    TOPIC = "com.example.chat"

    def __init__(self, machine):
        self.machine = machine
        self.token = None

    def service(self, words):
        return self.machine.run(f"runuser -u herald -- herald {words} --data /var/lib/herald")

    def follow_the_manual(self):
        """Does what the manual's section has after the installation, up to the first notification on the device."""
        code, *others = [command for block in manual("The Debian packages")[1:] for command in block]
        words = {"CODE": re.search(r"^code\s+(\S+)$", self.machine.run(code), re.M)[1]}
        for command in others:
            command = re.sub(r"\b(CODE|TOKEN)\b(?!=)", lambda word: words[word[0]], command)
            if "agent show" in command:
                found = eventually(lambda: re.search(r"^  token (\w{64})$", self.machine.run(command), re.M), "a device token")
                words["TOKEN"] = self.token = found[1]
            elif command.startswith("journalctl"):
                eventually(lambda: "It works" in self.machine.run(command), "a notification in the device's log")
            else:
                self.machine.run(command)
        assert self.shown() == ["It works"]

    def waiting(self):
        """The number of notifications that wait on the service."""
        return int(re.search(r"^notifications\s+(\d+) waiting", self.service("status"), re.M)[1])

    def shown(self):
        """The alerts that the device has shown, in order."""
        lines = (self.machine.root / "var/lib/herald-agent/shown.jsonl").read_text().splitlines()
        payloads = [json.loads(json.loads(line)["payload"]) for line in lines]
        return [payload["aps"]["alert"] for payload in payloads]

    def send(self, alert):
        self.service(f"send {self.token} --topic {self.TOPIC} --certificate /var/lib/herald/provider.pem --alert '{alert}'")


def manual(title, part=None):
    """The commands of each `sh` block in a section of the manual of installation, or in one part of it, without comments."""
    text = (ROOT / "docs" / "operations" / "installing.md").read_text()
    section = re.search(rf"^## {title}\n(.*?)(?=^## )", text, re.M | re.S)[1]
    parts = re.split(r"^### (.*)\n", section, flags=re.M)
    section = dict(zip(parts[1::2], parts[2::2]))[part] if part else parts[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    return [[line.split("    #")[0].strip() for line in block.splitlines()] for block in blocks]
