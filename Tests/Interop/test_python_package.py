"""`clients/python` in a virtual environment of its own: its tests, the example of its README, and its types."""

import os
import re
import subprocess
import sys
import sysconfig

import pytest

from service import HERALD, PATIENCE, ROOT

PACKAGE = ROOT / "clients" / "python"
#: A plugin that writes down where the service of a worker is.
PLACES = """
import os, pathlib, pytest

@pytest.fixture(scope="session", autouse=True)
def place(herald, worker_id):
    (pathlib.Path(os.environ["PLACES"]) / worker_id).write_text(str(herald.api_port))
"""


def run(*command, **options):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=5 * PATIENCE, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def python(tmp_path):
    """A Python with the package installed. Other packages are those of the interop tests, so that nothing is fetched."""
    folder = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", PACKAGE)
    assert (site / "herald_testing" / "py.typed").exists()
    return folder / "bin" / "python"


@pytest.mark.slow
def test_its_tests_and_the_example_of_its_readme_pass_side_by_side(python, tmp_path):
    """Two workers of pytest-xdist have two services."""
    example, places = tmp_path / "example", tmp_path / "places"
    for folder in (example, places):
        folder.mkdir()
    (example / "places_plugin.py").write_text(PLACES)
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", (PACKAGE / "README.md").read_text(), re.M | re.S):
        (example / name).write_text(text)
    environment = {**os.environ, "HERALD_BINARY": str(HERALD), "PYTHONPATH": str(example), "PLACES": str(places)}
    command = [python, "-m", "pytest", PACKAGE / "tests", example, "-n", "2", "-q", "-p", "places_plugin", "-p", "no:cacheprovider"]
    output = run(*command, "--rootdir", tmp_path, env=environment, cwd=tmp_path)
    assert re.search(r"^40 passed in ", output, re.M), output
    assert len({place.read_text() for place in places.iterdir()}) == 2


def test_it_has_the_version_of_herald():
    version = run(ROOT / "scripts" / "version").strip()
    assert f'\nversion = "{version}"\n' in (PACKAGE / "pyproject.toml").read_text()


def test_its_types_are_complete(tmp_path):
    run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "--python-version", "3.10", PACKAGE / "herald_testing")
