"""The tarball: what docs/operations/installing.md says, on a machine without Debian's package of Herald."""

from conftest import only
from machine import Herald, manual


def test_the_commands_of_the_manual_install_it(machine, dependencies):
    ((libraries, *commands),) = manual("The tarball")
    archive = only("herald-*.tar.gz")
    (machine.root / "root" / archive.name).write_bytes(archive.read_bytes())
    # The manual's list has the libraries of the package. The machine has no network: they come from apt's cache.
    needed = {name for name in dependencies if name not in ("libc6", "libgcc-s1", "systemd")}
    assert libraries.startswith("apt-get install -y ") and needed <= set(libraries.split())
    machine.apt(f"install {' '.join(sorted(needed))}")
    machine.run("\n".join(["cd /root", *commands]))
    units, monitoring = "/usr/local/lib/systemd/system/herald*.service", "/usr/local/share/herald/monitoring/*"
    pages = machine.run(f"grep -hoE '[^ \"]*docs/[a-z/-]+\\.md' {units} {monitoring}").split()
    assert len(pages) > 30 and "/usr/local/share/doc/herald/docs/operations/alerts.md" in pages
    machine.run("ls " + " ".join(pages))
    Herald(machine).follow_the_manual()
    assert machine.run("readlink /proc/$(systemctl show --property MainPID --value herald)/exe").strip() == "/usr/local/bin/herald"
