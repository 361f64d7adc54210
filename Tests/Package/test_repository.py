"""The repository of apt that a release is: what docs/operations/installing.md and docs/releases.md say."""

import os
import subprocess

from machine import PATIENCE, ROOT, manual, relabelled

ONLY = "-o Dir::Etc::SourceList=/etc/apt/sources.list.d/herald.list -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0"
INSTALLED = "dpkg-query --show --showformat '${Package} ${Version} ${db:Status-Status}\\n' 'herald*' | grep ' installed$' | cut -d ' ' -f 1-2"


def test_a_kiosk_installs_and_upgrades_from_a_signed_repository(machine, packages, tmp_path):
    environment = {**os.environ, "GNUPGHOME": str(tmp_path / "gnupg")}
    (tmp_path / "gnupg").mkdir(mode=0o700)

    def call(*command):
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE)

    folder = machine.root / "srv/herald"

    def publish(files, *key):
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir(parents=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
        call(ROOT / "scripts" / "repository", folder, *key)

    try:
        call("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "packages@example.com", "ed25519", "sign", "never")
        publish(relabelled(packages, tmp_path, "1"), "packages@example.com")
        # The machine has no web server, and apt no network.
        key, line, *_ = manual("The Debian packages", "From a repository")[0]
        machine.run(f"install -D -m 644 /srv/herald/herald.asc {key.split()[2]}")
        machine.run(line.replace("https://packages.example.com/herald", "file:/srv/herald"))
        machine.apt(f"{ONLY} update")
        machine.apt("install herald-agent")
        assert machine.run(INSTALLED).split("\n")[:-1] == ["herald 1", "herald-agent 1"]
        assert machine.run("ls /lib/systemd/system | grep herald").split() == ["herald-agent.service"]

        publish(relabelled(packages, tmp_path, "2"), "packages@example.com")
        machine.apt(f"{ONLY} update")
        machine.apt("upgrade")
        assert machine.run(INSTALLED).split("\n")[:-1] == ["herald 2", "herald-agent 2"]

        # An index that nobody has signed is refused, unless the line says that it is trusted.
        publish(relabelled(packages, tmp_path, "3"))
        assert "is no longer signed" in machine.run(f"apt-get {ONLY} update 2>&1 || true")
        machine.run("sed -i 's/signed-by=[^]]*/trusted=yes/' /etc/apt/sources.list.d/herald.list; rm /var/lib/apt/lists/*srv_herald*")
        machine.apt(f"{ONLY} update")
        machine.apt("upgrade")
        assert machine.run(INSTALLED).split("\n")[:-1] == ["herald 3", "herald-agent 3"]
    finally:
        call("gpgconf", "--kill", "all")
