"""The Debian package: from `apt install` to a notification, and through upgrade, removal and purge without a loss."""

import re
import subprocess
import time

from conftest import only
from machine import Herald, eventually, manual


def test_lintian_finds_no_error(package):
    result = subprocess.run(
        ["lintian", "--allow-root", "--fail-on=error", package, only("herald-dbgsym_*.deb")], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


def test_the_debug_symbols_are_those_of_the_binary(package, tmp_path):
    symbols = only("herald-dbgsym_*.deb")
    for archive in (package, symbols):
        subprocess.run(["dpkg-deb", "--extract", archive, tmp_path], check=True)
    notes = subprocess.check_output(["readelf", "--notes", tmp_path / "usr/bin/herald"], text=True)
    identifier = re.search(r"Build ID: (\w+)", notes)[1]
    assert (tmp_path / f"usr/lib/debug/.build-id/{identifier[:2]}/{identifier[2:]}.debug").stat().st_size > 10_000_000


def install(machine, package):
    (machine.root / "var/cache" / package.name).write_bytes(package.read_bytes())
    return machine.apt(f"--allow-downgrades install /var/cache/{package.name}")


def test_the_manual_begins_with_the_command_that_the_tests_use():
    assert manual("The Debian package")[0] == ["apt install ./herald_*.deb"]


def test_the_first_notification_is_on_a_device_within_a_minute(machine, package):
    herald = Herald(machine)
    assert "no toolchain" in machine.run("command -v swift || echo no toolchain")
    install(machine, package)
    start = time.monotonic()
    herald.follow_the_manual()
    seconds = time.monotonic() - start
    print(f"\nthe first notification: {seconds:.1f} s after apt install")
    assert seconds < 60

    # The units are as systemd wants them, and the users own what is theirs.
    assert machine.run("systemctl is-active herald herald-agent").split() == ["active", "active"]
    assert machine.run("systemctl is-enabled herald-relay || true").split() == ["disabled"]
    assert machine.run("systemctl show --property Type,WatchdogUSec herald").split() == ["Type=notify", "WatchdogUSec=1min"]
    assert machine.run("stat -c '%U %a' /var/lib/herald /var/lib/herald-agent").split() == ["herald", "700", "herald-agent", "700"]
    assert machine.listening() == {"0100007F"}
    machine.run("systemctl reload herald")
    assert "ready" in herald.service("status")


def relabelled(package, folder, version):
    """The same package with another version."""
    tree = folder / f"tree-{version}"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.M))
    other = folder / f"herald_{version}_other.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, other], check=True, stdout=subprocess.DEVNULL)
    return other


UNITS = ("herald", "herald-relay", "herald-agent")


def states(machine):
    """The state of each unit, and the identifier of its present run, which is empty for one that does not run."""
    return {
        unit: (
            machine.run(f"systemctl is-active {unit} || true").strip(),
            machine.run(f"systemctl show --property InvocationID --value {unit}").strip(),
        )
        for unit in UNITS
    }


def active(machine):
    return {unit for unit, (state, _) in states(machine).items() if state == "active"}


def start_the_relay(herald):
    """Does what the comment of relay.yaml says."""
    machine = herald.machine
    (machine.root / "etc/herald/relay.yaml").write_text(
        "database: sqlite:///var/lib/herald-relay/queue.db\napps:\n  - name: chat\n    topic: com.example.chat\n"
        "    certificate: /etc/herald/provider.pem\n    service: localhost:2197\n    ca: /etc/herald/ca.pem\n"
    )
    for file in ("provider.pem", "ca.pem"):
        machine.run(f"install -m 640 -g herald-relay /var/lib/herald/{file} /etc/herald/{file}")
    machine.run("systemctl enable --now herald-relay")


def test_an_upgrade_restarts_what_runs_and_starts_nothing_else(machine, package, tmp_path):
    older, newer = relabelled(package, tmp_path, "0.1"), relabelled(package, tmp_path, "99")
    install(machine, older)
    assert active(machine) == {"herald"}
    herald = Herald(machine)
    herald.follow_the_manual()
    start_the_relay(herald)
    assert active(machine) == set(UNITS)

    # An upgrade and a downgrade restart all three.
    for other in (newer, older):
        before = states(machine)
        install(machine, other)
        after = states(machine)
        assert active(machine) == set(UNITS), after
        assert all(after[unit] != before[unit] for unit in UNITS)

    # A unit that is off stays off, enabled or not. One that runs without being enabled is restarted.
    machine.run("systemctl stop herald-agent; systemctl disable herald-relay; systemctl disable --now herald")
    for other in (newer, older):
        install(machine, other)
        assert active(machine) == {"herald-relay"}
    machine.run("systemctl stop herald-relay; systemctl enable --now herald; systemctl disable herald-agent")
    install(machine, newer)
    assert active(machine) == {"herald"}
    enabled = machine.run(f"systemctl is-enabled {' '.join(UNITS)} || true").split()
    assert enabled == ["enabled", "disabled", "disabled"]

    # A removal stops all three. An installation after it starts what is enabled.
    machine.run(f"systemctl enable herald-relay; systemctl start {' '.join(UNITS)}")
    assert active(machine) == set(UNITS)
    machine.apt("remove herald")
    assert active(machine) == set() and machine.run("grep -lx herald /proc/[0-9]*/comm || true") == ""
    install(machine, newer)
    assert active(machine) == {"herald", "herald-relay"}

    # So does a purge, which leaves no link to a unit.
    machine.run("systemctl start herald-agent")
    machine.apt("purge herald")
    assert active(machine) == set() and machine.run("grep -lx herald /proc/[0-9]*/comm || true") == ""
    assert machine.run("find /etc/systemd/system /run -name 'herald*' -not -path '/run/systemd/propagate/*'") == ""


def test_upgrade_removal_purge_and_restore_lose_nothing(machine, package, tmp_path):
    herald, expected = Herald(machine), ["It works"]
    install(machine, relabelled(package, tmp_path, "0.1"))
    herald.follow_the_manual()

    def wait_on_the_service(alert):
        """Sends a notification that the device, which is away, gets later."""
        machine.run("systemctl stop herald-agent")
        herald.send(alert)
        expected.append(alert)
        assert herald.waiting() == 1

    def come_back():
        machine.run("systemctl start herald-agent")
        eventually(lambda: herald.shown() == expected, f"{expected} on the device, which shows {herald.shown()}")
        eventually(lambda: herald.waiting() == 0, "an empty mailbox")

    # An upgrade restarts the service, and keeps what the operator wrote.
    wait_on_the_service("Before the upgrade")
    machine.run("echo 'log-level: notice' >> /etc/herald/herald.yaml")
    before = machine.run("systemctl show --property MainPID herald")
    install(machine, package)
    assert machine.run("systemctl show --property MainPID herald") != before
    assert "log-level: notice" in (machine.root / "etc/herald/herald.yaml").read_text()
    monitoring = machine.root / "usr/share/herald/monitoring"
    assert {path.name for path in monitoring.iterdir()} == {"herald.json", "herald.rules.yml"}
    come_back()

    # A removal keeps configuration and data.
    wait_on_the_service("Before the removal")
    machine.apt("remove herald")
    assert "inactive" in machine.run("systemctl is-active herald || true")
    assert not (machine.root / "usr/bin/herald").exists()
    install(machine, package)
    come_back()

    # A purge removes the configuration, keeps keys and data, and says so.
    wait_on_the_service("Before the purge")
    settings = (machine.root / "etc/herald/agent.yaml").read_text()
    said = machine.apt("purge herald")
    assert "herald: /var/lib/herald stays, with keys and data; to delete it: rm -r /var/lib/herald\n" in said
    assert "herald: /var/lib/herald-agent stays" in said and "herald-relay stays" not in said
    assert not (machine.root / "etc/herald").exists()
    install(machine, package)
    (machine.root / "etc/herald/agent.yaml").write_text(settings)
    come_back()

    # A backup brings back what somebody deleted after a purge.
    wait_on_the_service("Before the loss")
    machine.run("herald backup --data /var/lib/herald /var/backups/monday")
    machine.apt("purge herald")
    machine.run("rm -r /var/lib/herald")
    install(machine, package)
    assert herald.waiting() == 0
    machine.run("systemctl stop herald; mv /var/lib/herald /var/lib/herald.old")
    machine.run("herald restore /var/backups/monday --data /var/lib/herald; systemctl start herald")
    (machine.root / "etc/herald/agent.yaml").write_text(settings)
    come_back()
