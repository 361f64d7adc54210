"""A desktop without a screen: a session bus, and a notification service that somebody else wrote (python-dbusmock)."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from service import PATIENCE, eventually

#: The interpreter that Debian's python3-dbusmock belongs to.
PYTHON = "/usr/bin/python3"
NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
CAPABILITIES = "actions body body-markup icon-static sound"
EXPIRED, DISMISSED, CLOSED_BY_CALL = 1, 2, 3

#: Reads the service's calls, or makes it send a signal.
REMOTE = f"""
import json, sys
import dbus
order = json.load(sys.stdin)
mock = dbus.Interface(dbus.SessionBus().get_object("{NAME}", "{PATH}"), "org.freedesktop.DBus.Mock")
if "connection" in order:
    bus = dbus.SessionBus()
    daemon = dbus.Interface(bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus")
    names = [name for name in bus.list_names() if name.startswith(":")]
    print(json.dumps([str(name) for name in names if daemon.GetConnectionUnixProcessID(name) == order["connection"]]))
elif "pretend" in order:
    from dbus.lowlevel import SignalMessage
    name, number = order["pretend"]
    message = SignalMessage("{PATH}", "{NAME}", name)
    message.append(dbus.UInt32(number), "default", signature="us")
    message.set_destination(order["to"])
    bus = dbus.SessionBus()
    bus.send_message(message)
    bus.flush()
elif "signal" in order:
    to = dbus.Dictionary({{"destination": order["to"]}} if order["to"] else {{}}, signature="sv")
    name, types, values = order["signal"]
    values = [dbus.UInt32(value) if type == "u" else value for type, value in zip(types, values)]
    mock.EmitSignalDetailed("{NAME}", name, types, dbus.Array(values, signature="v"), to)
else:
    json.dump([[str(name), arguments] for _, name, arguments in mock.GetCalls()], sys.stdout, default=str)
"""


class Shown:
    """One call of `Notify`."""

    def __init__(self, arguments):
        self.app, self.replaces, self.icon, self.summary, self.body, actions, self.hints, self.timeout = arguments
        self.actions = list(zip(actions[::2], actions[1::2]))


class Desktop:
    """The bus of a session; its service comes with `start` and goes with `stop`."""

    def __init__(self, folder):
        self.runtime = folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.service = None
        if not shutil.which("dbus-daemon"):
            pytest.fail("dbus-daemon is not there; run `make peers`")
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address", f"--address=unix:path={folder}/bus"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.environment = {
            **os.environ, "DBUS_SESSION_BUS_ADDRESS": self.bus.stdout.readline().strip(),
            "XDG_RUNTIME_DIR": str(self.runtime),
        }

    def start(self, capabilities=CAPABILITIES):
        """Starts the notification service, and waits until it is on the bus."""
        self.service = subprocess.Popen(
            [
                PYTHON, "-m", "dbusmock", "--session", "--template", "notification_daemon",
                "--parameters", json.dumps({"capabilities": capabilities}),
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment,
        )
        eventually(self._is_there, what="the notification service (python3-dbusmock; run `make peers`)")
        return self

    def _is_there(self):
        if self.service.poll() is not None:
            pytest.fail(f"python3-dbusmock does not run (run `make peers`): {self.service.stderr.read()}")
        return self._remote({}, check=False) is not None

    def stop(self):
        """Ends the notification service."""
        if self.service and self.service.poll() is None:
            self.service.send_signal(signal.SIGTERM)
            self.service.wait(timeout=PATIENCE)

    def close(self):
        self.stop()
        self.bus.send_signal(signal.SIGTERM)
        self.bus.wait(timeout=PATIENCE)

    def _remote(self, order, check=True):
        result = subprocess.run(
            [PYTHON, "-c", REMOTE], input=json.dumps(order), env=self.environment, capture_output=True, text=True,
            timeout=PATIENCE,
        )
        if result.returncode != 0:
            assert not check, result.stderr
            return None
        return json.loads(result.stdout or "[]")

    def shown(self):
        """The shown notifications, oldest first; dbusmock numbers them from 1."""
        return [Shown(arguments) for name, arguments in self._remote({}) if name == "Notify"]

    def closed(self):
        """The numbers that it was asked to close."""
        return [arguments[0] for name, arguments in self._remote({}) if name == "CloseNotification"]

    def wait_shown(self, count):
        """Waits until that many were shown."""
        return eventually(lambda: shown if len(shown := self.shown()) >= count else None, what=f"notification {count}")

    def wait_closed(self, number):
        eventually(lambda: number in self.closed(), what=f"the end of notification {number}")

    def say(self, name, types, *values, to=None):
        """The service sends a signal: to all, or as some desktops do, to one connection alone."""
        self._remote({"signal": [name, types, values], "to": to})

    def click(self, number, key="default", to=None):
        self.say("ActionInvoked", "us", number, key, to=to)

    def connection_of(self, pid):
        """The name of a process on the bus."""
        (name,) = self._remote({"connection": pid})
        return name

    def pretend(self, name, number, to):
        """Somebody who is not the service sends a signal of the service's."""
        self._remote({"pretend": [name, number], "to": to})

    def close_notification(self, number, reason):
        self.say("NotificationClosed", "uu", number, reason)
