"""The Debian packages: from `apt install` to a notification, and through upgrade, removal and purge without a loss."""

import re
import subprocess
import time

from conftest import only
from machine import Herald, eventually, manual, relabelled


def test_lintian_finds_no_error(packages):
    files = [*packages.values(), only("herald-dbgsym_*.deb")]
    result = subprocess.run(["lintian", "--allow-root", "--fail-on=error", *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_debug_symbols_are_those_of_the_binary(packages, tmp_path):
    symbols = only("herald-dbgsym_*.deb")
    for archive in (packages["herald"], symbols):
        subprocess.run(["dpkg-deb", "--extract", archive, tmp_path], check=True)
    notes = subprocess.check_output(["readelf", "--notes", tmp_path / "usr/bin/herald"], text=True)
    identifier = re.search(r"Build ID: (\w+)", notes)[1]
    assert (tmp_path / f"usr/lib/debug/.build-id/{identifier[:2]}/{identifier[2:]}.debug").stat().st_size > 10_000_000


def test_the_pages_link_only_to_what_is_packaged(packages, tmp_path):
    subprocess.run(["dpkg-deb", "--extract", packages["herald"], tmp_path], check=True)
    pages = list((tmp_path / "usr/share/doc/herald").rglob("*.md"))
    links = {page: re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()) for page in pages}
    assert len(pages) > 40 and sum(map(len, links.values())) > 200
    lost = [f"{page.name}: {link}" for page, those in links.items() for link in those if not (page.parent / link).exists()]
    paths = {path for page in pages for path in re.findall(r"/usr/share/doc/herald[-\w./]*\w", page.read_text())}
    assert {"/usr/share/doc/herald/examples/Cluster/certificates", "/usr/share/doc/herald/examples/herald-agent"} <= paths
    assert lost + [path for path in paths if not (tmp_path / path[1:]).exists()] == []


def content(file):
    """The paths of the files in a package, without documentation."""
    lines = subprocess.check_output(["dpkg-deb", "--contents", file], text=True).splitlines()
    paths = [line.split()[5][1:] for line in lines if not line.startswith("d")]
    return {path for path in paths if not path.startswith("/usr/share/doc/")}


def test_each_service_has_a_package_of_its_own(packages):
    for name, unit, settings in (
        ("herald-server", "herald", "herald"), ("herald-relay", "herald-relay", "relay"), ("herald-agent", "herald-agent", "agent")
    ):
        expected = {
            f"/etc/herald/{settings}.yaml", f"/lib/systemd/system/{unit}.service", f"/usr/lib/sysusers.d/{unit}.conf",
            f"/usr/lib/tmpfiles.d/{unit}.conf",
            *(f"/lib/systemd/system/herald-backup.{kind}" for kind in ("service", "timer") if name == "herald-server"),
        }
        assert content(packages[name]) == expected
    common = content(packages["herald"])
    assert "/usr/bin/herald" in common and not [path for path in common if path.startswith(("/etc", "/lib", "/usr/lib"))]


def test_the_manual_begins_with_the_command_that_the_tests_use():
    assert manual("The Debian packages")[0] == ["apt install ./herald_*.deb ./herald-server_*.deb ./herald-agent_*.deb"]


def test_the_first_notification_is_on_a_device_within_a_minute(machine, packages):
    herald = Herald(machine)
    assert "no toolchain" in machine.run("command -v swift || echo no toolchain")
    machine.install(packages["herald"], packages["herald-server"], packages["herald-agent"])
    start = time.monotonic()
    herald.follow_the_manual()
    seconds = time.monotonic() - start
    print(f"\nthe first notification: {seconds:.1f} s after apt install")
    assert seconds < 60

    # The units are as systemd wants them, and the users own what is theirs.
    assert machine.run("systemctl is-active herald herald-agent").split() == ["active", "active"]
    assert machine.run("systemctl show --property Type,WatchdogUSec herald").split() == ["Type=notify", "WatchdogUSec=1min"]
    assert machine.run("stat -c '%U %a' /var/lib/herald /var/lib/herald-agent").split() == ["herald", "700", "herald-agent", "700"]
    assert machine.listening() == {"0100007F"}
    machine.run("systemctl reload herald")
    assert "ready" in herald.service("status")

    # Nothing of the relay is there. With its package comes a configuration that others cannot read, and nothing starts.
    assert machine.run("id herald-relay 2>&1 || true; ls /etc/herald").split()[-2:] == ["agent.yaml", "herald.yaml"]
    machine.install(packages["herald-relay"])
    assert machine.run("stat -c '%U %G %a' /etc/herald/relay.yaml").split() == ["root", "herald-relay", "640"]
    assert machine.run("systemctl is-enabled herald-relay || true; systemctl is-active herald-relay || true").split() == ["disabled", "inactive"]


UNITS = ("herald", "herald-relay", "herald-agent", "herald-backup.timer")
PURGE = "purge herald herald-server herald-relay herald-agent"


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


def test_an_upgrade_restarts_what_runs_and_starts_nothing_else(machine, packages, tmp_path):
    older, newer = relabelled(packages, tmp_path, "0.1"), relabelled(packages, tmp_path, "99")
    machine.install(*older)
    assert active(machine) == {"herald"}
    herald = Herald(machine)
    herald.follow_the_manual()
    start_the_relay(herald)
    machine.run("systemctl enable --now herald-backup.timer")
    assert active(machine) == set(UNITS)

    # An upgrade and a downgrade restart all of them.
    for other in (newer, older):
        before = states(machine)
        machine.install(*other)
        after = states(machine)
        assert active(machine) == set(UNITS), after
        assert all(after[unit] != before[unit] for unit in UNITS)

    # A unit that is off stays off, enabled or not. One that runs without being enabled is restarted.
    machine.run("systemctl stop herald-agent herald-backup.timer; systemctl disable herald-relay; systemctl disable --now herald")
    for other in (newer, older):
        machine.install(*other)
        assert active(machine) == {"herald-relay"}
    machine.run("systemctl stop herald-relay; systemctl enable --now herald; systemctl disable herald-agent")
    machine.install(*newer)
    assert active(machine) == {"herald"}
    enabled = machine.run(f"systemctl is-enabled {' '.join(UNITS)} || true").split()
    assert enabled == ["enabled", "disabled", "disabled", "enabled"]

    # A removal stops all. An installation after it starts what is enabled.
    machine.run(f"systemctl enable herald-relay; systemctl start {' '.join(UNITS)}")
    assert active(machine) == set(UNITS)
    machine.apt("remove herald")
    assert active(machine) == set() and machine.run("grep -lx herald /proc/[0-9]*/comm || true") == ""
    machine.install(*newer)
    assert active(machine) == {"herald", "herald-relay", "herald-backup.timer"}

    # So does a purge, which leaves no link to a unit.
    machine.run("systemctl start herald-agent")
    machine.apt(PURGE)
    assert active(machine) == set() and machine.run("grep -lx herald /proc/[0-9]*/comm || true") == ""
    assert machine.run("find /etc/systemd/system /run -name 'herald*' -not -path '/run/systemd/propagate/*'") == ""


def test_upgrade_removal_purge_and_restore_lose_nothing(machine, packages, tmp_path):
    herald, expected = Herald(machine), ["It works"]
    machine.install(*relabelled(packages, tmp_path, "0.1"))
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
    machine.install(*packages.values())
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
    machine.install(*packages.values())
    come_back()

    # A purge removes the configuration, keeps keys and data, and says so.
    wait_on_the_service("Before the purge")
    settings = (machine.root / "etc/herald/agent.yaml").read_text()
    said = machine.apt(PURGE)
    assert "herald-server: /var/lib/herald stays, with keys and data; to delete it: rm -r /var/lib/herald\n" in said
    assert "herald-agent: /var/lib/herald-agent stays" in said and "herald-relay stays" not in said
    assert not (machine.root / "etc/herald").exists()
    machine.install(*packages.values())
    (machine.root / "etc/herald/agent.yaml").write_text(settings)
    come_back()

    # A backup brings back what somebody deleted after a purge.
    wait_on_the_service("Before the loss")
    # The unit of the timer keeps the newest, and leaves what it has not made.
    machine.run("mkdir -p /etc/systemd/system/herald-backup.service.d /var/backups/herald/mine.Z /var/backups/herald/2026-01-02T030405.006Z.unfinished")
    machine.run("printf '[Service]\nEnvironment=KEEP=1\n' > /etc/systemd/system/herald-backup.service.d/keep.conf; systemctl daemon-reload")
    machine.run("systemctl start herald-backup; ls /var/backups/herald > /tmp/first; systemctl start herald-backup")
    backup, mine = machine.run("ls /var/backups/herald").split()
    first, _ = machine.run("cat /tmp/first").split()
    assert mine == "mine.Z" and backup > first
    machine.apt(PURGE)
    machine.run("rm -r /var/lib/herald")
    machine.install(*packages.values())
    assert herald.waiting() == 0
    machine.run("systemctl stop herald; mv /var/lib/herald /var/lib/herald.old")
    machine.run(f"herald restore /var/backups/herald/{backup} --data /var/lib/herald; systemctl start herald")
    (machine.root / "etc/herald/agent.yaml").write_text(settings)
    come_back()
