"""The tarball: what docs/operations/installing.md says, on a machine without Debian's package of Herald."""

import re

from conftest import ROOT, only
from machine import Herald, become_device, eventually

MANUAL = (ROOT / "docs" / "operations" / "installing.md").read_text()


def test_the_commands_of_the_manual_install_it(machine, dependencies):
    (section,) = re.findall(r"^## The tarball\n.*?```sh\n(.*?)```", MANUAL, re.M | re.S)
    archive = only("herald-*.tar.gz")
    (machine.root / "root" / archive.name).write_bytes(archive.read_bytes())
    # The manual's list of libraries is the package's. The machine has no network, so this one comes from apt's cache.
    libraries = re.search(r"^apt-get install -y (.*)$", section, re.M)[1].split()
    ours = {name for name in dependencies if name not in ("libc6", "libgcc-s1", "systemd")}
    assert ours <= set(libraries)
    machine.apt(f"install {' '.join(sorted(ours))}")
    machine.run("cd /root\n" + section.split("\n", 1)[1])

    herald = Herald(machine)
    herald.send(become_device(herald), "From a tarball")
    eventually(lambda: herald.shown() == ["From a tarball"], "a notification on the device")
    assert machine.run("readlink /proc/$(systemctl show --property MainPID --value herald)/exe").strip() == "/usr/local/bin/herald"
