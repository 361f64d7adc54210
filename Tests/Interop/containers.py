"""Runs what a compose file says without a container engine: each container is processes with mounts of their own.

All containers share one network namespace, in which each has an address of its own. The image is this machine's root, with
empty /run and /var/lib, and the user `herald`. What the file says and this cannot do is refused.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading

import yaml

from service import HERALD, PATIENCE, ROOT, eventually

COMPOSE = ROOT / "Examples" / "Compose" / "compose.yaml"
#: The user, environment and entrypoint of the Herald image (scripts/image).
USER, ENVIRONMENT, ENTRYPOINT = 2191, {"HERALD_DATA": "/var/lib/herald", "HERALD_HOST": "0.0.0.0"}, ["herald"]
SERVICE_KEYS = {
    "image", "init", "user", "entrypoint", "command", "volumes", "depends_on", "sysctls", "healthcheck", "networks", "ports", "profiles",
}
CONTAINER = """
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/herald
mount --bind "$MACHINE/hosts" /etc/hosts
mount --bind "$MACHINE/passwd" /etc/passwd
mount --bind "$MACHINE/group" /etc/group
eval "$MOUNTS"
unset MACHINE MOUNTS
cd /var/lib/herald
exec "$@"
"""


class Composition:
    """The containers of a compose file."""

    def __init__(self, file, folder):
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", file.read_text())
        self.place, self.folder = file.parent, folder
        composition = yaml.safe_load(text)
        self.services = composition["services"]
        self.volumes = {name: folder / name for name in composition["volumes"]}
        self.seen = set()
        self.running = {}
        self.addresses = {name: f"172.18.0.{number}" for number, name in enumerate(self.services, start=2)}
        aliases = ((name, self._aliases(name)) for name in self.services)
        hosts = [f"{self.addresses[name]} {' '.join([name, *more])}" for name, more in aliases]
        (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts, ""]))
        user = USER if os.geteuid() == 0 else 0
        (folder / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\nherald:x:{user}:{user}::/var/lib/herald:/usr/sbin/nologin\n")
        (folder / "group").write_text(f"root:x:0:\nherald:x:{user}:\n")
        # Commands of other images: what they fetch is here already.
        tools = folder / "tools"
        tools.mkdir()
        (tools / "pip").write_text("#!/bin/sh\n")
        (tools / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
        self.path = f"{HERALD.parent}:{tools}:{os.environ['PATH']}"
        self._start_network()

    def _aliases(self, name):
        return self.services[name].get("networks", {}).get("default", {}).get("aliases", [])

    def _start_network(self):
        user = ["--map-root-user"] if os.geteuid() else []
        setup = "".join(f"ip addr add {address} dev lo; " for address in self.addresses.values())
        self.network = subprocess.Popen(
            ["unshare", *user, "--net", "sh", "-ec", f"ip link set lo up; {setup}echo ready; exec sleep infinity"],
            stdout=subprocess.PIPE, text=True,
        )
        assert self.network.stdout.readline() == "ready\n"
        namespaces = ["--net", *(["--user", "--preserve-credentials"] if user else [])]
        self._enter = ["nsenter", "--target", str(self.network.pid), *namespaces]

    def inside(self, *command):
        """Runs a command in the containers' network."""
        return subprocess.run([*self._enter, *map(str, command)], capture_output=True, text=True, timeout=PATIENCE)

    def _command(self, name, arguments):
        """The command of a container, with all that its image and its service say."""
        service = self.services[name]
        assert set(service) <= SERVICE_KEYS, f"{name}: {set(service) - SERVICE_KEYS}"
        is_herald = service["image"].startswith("herald:")
        entrypoint = service.get("entrypoint", ENTRYPOINT)
        command = arguments or service.get("command", [])
        words = [*entrypoint, *(shlex.split(command) if isinstance(command, str) else command)]
        words = [word.replace("$$", "$") for word in words]
        for key, value in service.get("sysctls", {}).items():
            assert self.inside("sh", "-c", f"echo {value} > /proc/sys/{key.replace('.', '/')}").returncode == 0
        mounts = "".join(self._mount(volume) for volume in service.get("volumes", []))
        if is_herald and service.get("user") != "root" and os.geteuid() == 0:
            words = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *words]
        environment = {
            "PATH": self.path, "MACHINE": str(self.folder), "MOUNTS": mounts, "LANG": "C.UTF-8", **(ENVIRONMENT if is_herald else {}),
        }
        return [*self._enter, "unshare", "--mount", "sh", "-ec", CONTAINER, "sh", *words], environment

    def _mount(self, volume):
        source, target, *options = volume.split(":")
        if source.startswith("./"):
            # A file beside the compose file: its mount point must be there, and the machine's root stays as it is.
            return f"mount -t tmpfs tmpfs /mnt; touch /mnt/file; mount --bind {self.place / source} /mnt/file; "
        path = self.volumes[source]
        if source not in self.seen:
            self.seen.add(source)
            path.mkdir(mode=0o755)
            # The first mount of a new volume copies what the image has there.
            if target == "/var/lib/herald" and os.geteuid() == 0:
                path.chmod(0o700)
                os.chown(path, USER, USER)
        read_only = f"; mount -o remount,ro,bind {target}" if options == ["ro"] else ""
        return f"mkdir -p {target}; mount --bind {path} {target}{read_only}; "

    def run(self, name, *arguments):
        """Runs a container to its end; what it prints."""
        command, environment = self._command(name, arguments)
        command = [word.replace("/sender.py", "/mnt/file") for word in command]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE)
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"
        return result.stdout

    def up(self):
        """Starts the containers without a profile, each after those on which it depends."""
        started = set()

        def start(name):
            service = self.services[name]
            for other, how in service.get("depends_on", {}).items():
                if other not in started:
                    start(other)
                if how["condition"] == "service_healthy":
                    self._wait_until_healthy(other)
            if "profiles" not in service:
                is_awaited = any(
                    how["condition"] == "service_completed_successfully"
                    for each in self.services.values() for other, how in each.get("depends_on", {}).items() if other == name
                )
                self.run(name) if is_awaited else self._start(name)
            started.add(name)

        for name in self.services:
            if name not in started:
                start(name)

    def _wait_until_healthy(self, name):
        kind, *check = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        eventually(lambda: self._exec(name, *check).returncode == 0, what=f"health of {name}")

    def _exec(self, name, *command):
        enter = [*self._enter, "nsenter", "--target", str(self.running[name].pid), "--mount"]
        variables = ["env", f"PATH={self.path}", "HERALD_DATA=/var/lib/herald"]
        return subprocess.run([*enter, *variables, *command], capture_output=True, text=True, timeout=PATIENCE)

    def exec(self, name, *command):
        """Runs a command in a running container; what it prints."""
        result = self._exec(name, *command)
        assert result.returncode == 0, f"{name}: {result.stdout}{result.stderr}"
        return result.stdout

    def _start(self, name):
        command, environment = self._command(name, ())
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        process.lines = []
        threading.Thread(target=lambda: process.lines.extend(iter(process.stdout.readline, "")), daemon=True).start()
        self.running[name] = process

    def line(self, name, pattern):
        """The first match of a pattern in what a container prints."""
        return eventually(lambda: re.search(pattern, "".join(self.running[name].lines)), what=f"{pattern} of {name}")

    def close(self):
        for process in [*self.running.values(), self.network]:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=PATIENCE)
