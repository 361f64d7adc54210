"""The OCI image: what is in it, started as an engine for containers would start it."""

import json
import os
import re
import subprocess

import pytest

from conftest import only
from machine import PATIENCE, eventually


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The image's configuration, and the folder with its root."""
    folder = tmp_path_factory.mktemp("image")
    subprocess.run(["tar", "--extract", "--file", only("herald-*.oci.tar"), "--directory", folder], check=True)

    def blob(descriptor):
        return folder / "blobs" / descriptor["digest"].replace(":", "/")

    (entry,) = json.loads((folder / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry).read_text())
    root = folder / "root"
    root.mkdir()
    for layer in manifest["layers"]:
        subprocess.run(["tar", "--extract", "--numeric-owner", "--file", blob(layer), "--directory", root], check=True)
    yield json.loads(blob(manifest["config"]).read_text()), root
    subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)


def test_the_configuration_is_that_of_a_service(image):
    config, root = image
    assert config["architecture"] in ("amd64", "arm64") and config["os"] == "linux"
    assert config["config"]["User"] == "2191:2191"
    assert list(config["config"]["Volumes"]) == ["/var/lib/herald"]
    assert set(config["config"]["ExposedPorts"]) == {f"{port}/tcp" for port in (2191, 2195, 2196, 2197, 5223)}
    assert (root / "var/lib/herald").stat().st_uid == 2191
    assert not any((root / "usr/bin" / name).exists() for name in ("swift", "apt-get", "systemctl"))


class Container:
    """An engine for containers: the image's root, user, folder and environment, in namespaces of its own."""

    def __init__(self, image):
        config, self.root = image
        self._config = config["config"]
        self._environment = dict(pair.split("=", 1) for pair in self._config["Env"])
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        self._main = subprocess.Popen(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec",
             'ip link set lo up; mount --bind "$0" "$0"; mount -t proc proc "$0/proc"; exec "$@"', self.root,
             *self._inside(self._config["Entrypoint"] + self._config["Cmd"])],
            env=self._environment | {"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        children = f"/proc/{self._main.pid}/task/{self._main.pid}/children"
        self._leader = eventually(lambda: open(children).read().split(), "the first process")[0]
        # An engine runs no further command before it has mounted /proc, without which Herald knows no arguments.
        line = f"/proc/{self._leader}/cmdline"
        eventually(lambda: open(line).read().startswith("herald\0"), "a service")

    def _inside(self, command):
        user, group = self._config["User"].split(":")
        path = self._environment["PATH"]
        script = f'cd "{self._config["WorkingDir"]}"; export PATH="{path}"; exec "$@"'
        return ["chroot", f"--userspec={user}:{group}", self.root, "sh", "-ec", script, "sh", *command]

    def execute(self, *command):
        """The output of a further command in the container, as `docker exec` starts it."""
        result = subprocess.run(
            ["nsenter", "--target", self._leader, "--mount", "--net", "--pid", "--", *self._inside(command)],
            env=self._environment | {"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=PATIENCE,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def stop(self):
        """Ends the service as an engine does, and returns its exit status."""
        os.kill(int(self._leader), 15)
        try:
            return self._main.wait(timeout=PATIENCE)
        finally:
            self._main.kill()
            self._main.wait()
            self._main.stdout.close()


def test_a_container_takes_a_notification_for_a_device(image):
    container = Container(image)
    try:
        container.execute("herald", "status", "--wait", "60s")
        container.execute("herald", "device", "enroll", "--name", "lamp", "--out", "lamp.pem")
        container.execute("herald", "provider", "certificate", "--topic", "com.example.chat", "--out", "provider.pem")
        agent = "herald agent run --identity lamp.pem --app com.example.chat > agent.log 2>&1 & echo $!"
        number = container.execute("sh", "-c", agent).strip()
        log = container.root / "var/lib/herald/agent.log"
        token = eventually(lambda: re.search(r"token .*(\w{64})", log.read_text()), "a device token")[1]
        container.execute(
            "herald", "send", token, "--topic", "com.example.chat", "--certificate", "provider.pem", "--alert", "In a container"
        )
        eventually(lambda: "In a container" in log.read_text(), "a notification on the device")
        container.execute("sh", "-c", f"kill {number}")
    finally:
        status = container.stop()
    # `unshare` reports the exit status of the service.
    assert status == 0
