"""The compose file: what it says is done by processes in namespaces, because tests have no container engine."""

import re
import subprocess

import pytest
import yaml

from containers import COMPOSE, Composition
from service import ROOT

#: The version in the name of an image or a package.
IMAGE = re.compile(r"\bherald(?:_testing-|_|:)(\d+\.\d+\.\d+)")


@pytest.fixture
def containers(tmp_path):
    composition = Composition(COMPOSE, tmp_path)
    yield composition
    composition.close()


@pytest.mark.slow
def test_a_sender_that_knows_apples_names_only_reaches_the_device(containers):
    containers.up()
    token = containers.line("phone", r"token for com\.example\.chat: ([0-9a-f]{64})")[1]
    assert containers.run("sender", token, "Dinner is ready") == "200 \n"
    containers.line("phone", "Dinner is ready")
    # A script finds the token, and asks the console what was sent.
    folder = "/var/lib/herald/device"
    assert token in containers.exec("phone", "herald", "agent", "show", "--folder", folder)
    secret = (containers.volumes["credentials"] / "console.token").read_text().strip()
    caught = ["curl", "--silent", "--show-error", "--cacert", containers.volumes["credentials"] / "ca.pem", "--resolve", f"herald:2190:{containers.addresses['herald']}"]
    answer = containers.inside(*caught, "--header", f"authorization: Bearer {secret}", "https://herald:2190/v1/caught?q=status:200")
    assert "Dinner is ready" in answer.stdout, answer.stderr
    # As a browser asks by the published port.
    page = ["curl", "--silent", "--fail", "--header", "Host: 127.0.0.1:8080", f"http://{containers.addresses['phone']}:8080/"]
    assert "<html" in containers.inside(*page).stdout
    # A second start finds all that the first one made, while the service runs.
    containers.run("setup")
    assert containers.run("sender", token, "Again") == "200 \n"


def test_it_uses_the_image_of_this_version():
    version = subprocess.run([ROOT / "scripts" / "version"], capture_output=True, text=True, check=True).stdout.strip()
    composition = yaml.safe_load(COMPOSE.read_text())
    images = {service["image"] for service in composition["services"].values() if "image" in service}
    assert f"${{HERALD_IMAGE:-herald:{version}}}" in images
    named = [found for page in ("containers", "testing") for found in re.findall(IMAGE, (ROOT / "docs" / f"{page}.md").read_text())]
    assert set(named) == {version}
    (published,) = composition["services"]["phone"]["ports"]
    assert re.match(r"127\.0\.0\.1:", published), "a screen controls its device"
