"""The examples as their users meet them: as packages of their own, and in `make demo`."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from service import HERALD, PATIENCE, ROOT, eventually

#: The product of each example, and its folder.
EXAMPLES = {"PushChat": "PushChat", "KitchenTimer": "KitchenTimer", "ExamSender": "Exam/HeraldProvider"}


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """The manifest of a package, as `swift package` reads it."""
    scratch = tmp_path_factory.mktemp("build")
    read = {}

    def manifest(folder):
        if folder not in read:
            command = ["swift", "package", "--package-path", folder, "--scratch-path", scratch, "dump-package"]
            environment = {**os.environ, "HERALD_DEVELOPMENT": "1"}
            result = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=2 * PATIENCE)
            read[folder] = json.loads(result.stdout)
        return read[folder]

    return manifest


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_package_is_the_tested_one(manifest, example):
    """Each is a package of its own. The tests use the same target of Herald's package, which sees nothing but `public`."""

    def parts(folder):
        found = manifest(folder)
        (target,) = [target for target in found["targets"] if target["name"] == example]
        packages = [json.dumps(package) for package in found["dependencies"] if "sourceControl" in package]
        # Herald's libraries are targets of the one and products for the other.
        products = sorted(product[0] for kind in target["dependencies"] for product in kind.values())
        return target, products, packages

    package, products, packages = parts(ROOT / "Examples" / EXAMPLES[example])
    built, same_products, all_packages = parts(ROOT)
    assert (products, package["resources"], package["settings"]) == (same_products, built["resources"], built["settings"])
    assert set(packages) <= set(all_packages)
    assert (ROOT / built["path"]).samefile(ROOT / "Examples" / EXAMPLES[example] / "Sources" / example)
    assert not built["packageAccess"]


def ask(address):
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return answer.read().decode()


def test_the_demo_starts_and_stops_everything(tmp_path):
    for _ in range(2):
        # The second time in the folder of the first.
        process = subprocess.Popen(
            [ROOT / "Examples" / "demo", "--folder", tmp_path / "demo", "--port", "0"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env={**os.environ, "HERALD_BINARY": str(HERALD)},
            # A suite in the background of a script ignores SIGINT, and its child processes would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            addresses = []
            lines = []
            for line in process.stdout:
                lines.append(line)
                addresses += [word for word in line.split() if line.startswith(("    Ann", "    Bob")) and "http" in word]
                if line == "ready\n":
                    break
            assert len(addresses) == 2, "".join(lines)
            pages = [app["screen_url"] for address in addresses for app in json.loads(ask(address + "api/device"))["apps"]]
            titles = [re.search("<title>(.*)</title>", ask(page))[1] for page in pages]
            assert titles == ["Kitchen Timer", "PushChat"] * 2
            for kitchen in pages[::2]:
                # It has found its device, and its server.
                eventually(lambda kitchen=kitchen: "trouble" not in ask(kitchen + "api/kitchen"), what="a kitchen without trouble")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE) == 0
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=PATIENCE)
        for address in [*addresses, *pages]:
            with pytest.raises(urllib.error.URLError):
                urllib.request.urlopen(address, timeout=5)
