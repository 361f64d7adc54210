"""The examples that let programs of apps do something: without one the agent's log has the failure, with it the program succeeds."""

import pytest

from machine import ROOT, Herald, eventually

EXAMPLES = "/usr/share/doc/herald/examples/herald-agent"
#: The order of a program, by the example that permits it.
ORDERS = {
    "polkit-rules/herald-agent-unit.rules": "systemctl start kiosk-update.service; test -e /run/updated",
    "herald-agent.service.d/files.conf": "touch /srv/kiosk/file",
    "herald-agent.service.d/sound.conf": "id -nG | grep -w audio; test -e /dev/console",
    "herald-agent.service.d/devices.conf": "id -nG | grep -w dialout; test -e /dev/console",
    "herald-agent.service.d/display.conf": "\n".join(
        f"""perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => "{path}") or die "{path}: $!\\n"'"""
        for path in ("/run/user/1000/wayland-0", "/tmp/.X11-unix/X0")
    ),
    "herald-agent.service.d/sudo.conf": "sudo -n id -u | grep -x 0",
    "polkit-rules/herald-agent-power.rules": "systemctl reboot",
}
FILES = {
    "srv/Kiosk.app/Info.plist": (
        '<?xml version="1.0"?><plist version="1.0"><dict><key>CFBundleIdentifier</key><string>com.example.chat</string>'
        "<key>UIBackgroundModes</key><array><string>remote-notification</string></array></dict></plist>"
    ),
    "srv/Kiosk.app/Programs/receive": "#!/bin/sh\nsh -ec '. /srv/order' && touch succeeded\n",
    "etc/systemd/system/kiosk-update.service": "[Service]\nType=oneshot\nExecStart=touch /run/updated\n",
    "etc/systemd/system/display.socket": (
        "[Socket]\nListenStream=/run/user/1000/wayland-0\nListenStream=/tmp/.X11-unix/X0\nSocketUser=kiosk\nSocketMode=0600\n"
    ),
    "etc/systemd/system/display.service": "[Service]\nExecStart=sleep infinity\n",
    "etc/sudoers.d/kiosk": "herald-agent ALL=(root) NOPASSWD: ALL\n",
}


def test_there_is_a_test_of_each_example():
    folder = ROOT / "Packaging" / "examples" / "herald-agent"
    assert {str(file.relative_to(folder)) for file in folder.rglob("*.*") if file.is_file()} == ORDERS.keys()


@pytest.fixture
def kiosk(machine, packages):
    herald = Herald(machine)
    machine.install(*packages.values())
    machine.apt("install polkitd sudo")
    for path, text in FILES.items():
        (machine.root / path).parent.mkdir(parents=True, exist_ok=True)
        (machine.root / path).write_text(text)
    machine.run(
        "useradd --create-home --uid 1000 kiosk; install -d -o kiosk /tmp/.X11-unix /run/user/1000; install -d -o herald-agent /srv/kiosk;"
        "chmod 755 /srv/Kiosk.app/Programs/receive; systemctl daemon-reload; systemctl start display.socket"
    )
    herald.follow_the_manual()
    machine.run("sed -i 's|com.example.chat|/srv/Kiosk.app|' /etc/herald/agent.yaml; systemctl restart herald-agent")
    return herald


def test_a_program_may_do_what_an_example_permits(kiosk):
    machine = kiosk.machine
    succeeded = machine.root / "var/lib/herald-agent/containers/com.example.chat/succeeded"

    def failures():
        return machine.run("journalctl -u herald-agent -o cat | grep 'its program receive failed' || true").splitlines()

    for example, order in ORDERS.items():
        (machine.root / "srv/order").write_text(order)
        before = failures()
        kiosk.send(f"without {example}")
        eventually(lambda: len(failures()) > len(before), f"the failure of {order}")
        print(failures()[-1])
        assert not succeeded.exists()

        is_rule = example.endswith(".rules")
        folder = "/etc/polkit-1/rules.d" if is_rule else "/etc/systemd/system/herald-agent.service.d"
        machine.run(f"mkdir -p {folder}; cp {EXAMPLES}/{example} {folder}")
        if not is_rule:
            machine.run("systemctl daemon-reload; systemctl restart herald-agent")
        kiosk.send(f"with {example}")
        if order == "systemctl reboot":
            machine.wait_for_its_restart()
            return
        eventually(succeeded.exists, f"the success of {order}")
        machine.run(f"rm -f {folder}/{example.split('/')[1]}")
        succeeded.unlink()
        machine.run("systemctl daemon-reload; systemctl restart herald-agent")
