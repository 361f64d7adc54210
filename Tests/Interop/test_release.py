"""The parts of a release: version, bill of materials, the subset of ICU's data, and the workflows that build it."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from service import HERALD, PATIENCE, ROOT

SCRIPTS = ROOT / "scripts"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE, **options).stdout


def test_an_archive_knows_the_commit_that_it_was_made_of(tmp_path):
    """GitHub's source archives come from `git archive`."""
    archive = subprocess.Popen(["git", "archive", "HEAD", "scripts", "Sources/Shared/HeraldModel/Version.swift"], cwd=ROOT, stdout=subprocess.PIPE)
    run("tar", "--extract", "--directory", tmp_path, stdin=archive.stdout)
    assert archive.wait(PATIENCE) == 0
    head = run("git", "log", "-1", "--format=%H %ct", cwd=ROOT).split()
    assert run(tmp_path / "scripts" / "version", "--commit").startswith(head[0][:12] + ", 20")
    assert run(tmp_path / "scripts" / "version", "--time").strip() == head[1]


def test_a_snapshot_sorts_below_its_release():
    number, package = run(SCRIPTS / "version").strip(), run(SCRIPTS / "version", "--debian").strip()
    assert package == number or package.startswith(f"{number}~20")
    subprocess.run(["dpkg", "--compare-versions", package, "le", number], check=True)


def test_a_folder_without_git_and_without_an_archive_still_has_a_version(tmp_path):
    for name in ("scripts/version", "Sources/Shared/HeraldModel/Version.swift", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    assert run("bash", tmp_path / "scripts" / "version", "--commit") == "commit unknown\n"
    assert run("bash", tmp_path / "scripts" / "version") == run(SCRIPTS / "version")


def test_the_bill_of_materials_is_valid_and_complete():
    text = run(SCRIPTS / "sbom", HERALD)
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    assert run(SCRIPTS / "sbom", HERALD) == text
    document = json.loads(text)
    assert document["metadata"]["component"]["version"] == run(SCRIPTS / "version").strip()
    names = {component["name"]: component["version"] for component in document["components"]}
    pins = json.loads((ROOT / "Package.resolved").read_text())["pins"]
    assert {pin["identity"]: pin["state"]["version"] for pin in pins}.items() <= names.items()
    assert {"swift-runtime", "libc6", "libjemalloc2", "libnghttp2-14", "libpq5", "libsqlite3-0"} <= names.keys()


def test_the_subset_of_icu_has_time_zones_and_one_language(tmp_path):
    target = json.loads(run("swiftc", "-print-target-info"))
    archive = pathlib.Path(target["paths"]["runtimeResourcePath"] + "_static") / "linux" / "lib_FoundationICU.a"
    symbol = run(SCRIPTS / "icu-subset", archive, tmp_path / "subset.o").strip()
    assert f"__wrap_{symbol}" in run("nm", tmp_path / "subset.o")
    data = (tmp_path / "subset.dat").read_bytes()
    items = set(re.findall(rb"\0icudt\w+/([\w/.]+)", data))
    assert {b"zoneinfo64.res", b"root.res", b"en.res", b"zone/root.res"} <= items
    assert not {b"de.res", b"zone/de.res", b"coll/root.res"} & items
    assert len(data) < 3 * 1024 * 1024


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_the_form_that_github_documents(workflow):
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)


def test_what_pip_installs_has_a_hash():
    """In this tree: pip asks for all hashes as soon as it finds one."""
    interop = ROOT / "Tests" / "Interop"
    for name in ("requirements.txt", "requirements-alone.txt"):
        text = (interop / name).read_text().replace("\\\n", "")
        packages = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
        assert packages and all(re.match(r"\S+==\S+ .*--hash=sha256:", line) for line in packages), name
    wanted = re.findall(r"(?m)^([\w.-]+).*==(\S+)", (interop / "requirements.in").read_text())
    locked = {name: version for name, version in re.findall(r"(?m)^([\w.-]+)(?:\[.*\])?==(\S+)", (interop / "requirements.txt").read_text())}
    for name, version in wanted:
        assert locked[re.sub(r"[._]", "-", name.lower())] == version
    installs = re.findall(r"(?m)pip install (.*)", (ROOT / "Makefile").read_text())
    assert installs and all("$(PIP)" in line for line in installs)


def test_a_resolution_that_is_there_is_used(tmp_path):
    """`make release` on a second machine builds with the versions of the first one."""
    dependency, package = tmp_path / "dependency", tmp_path / "package"
    git = ["git", "-C", dependency, "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for folder, more in ((dependency, ""), (package, f'.package(url: "{dependency}", from: "1.0.0")')):
        (folder / "Sources" / folder.name).mkdir(parents=True)
        (folder / "Sources" / folder.name / "x.swift").touch()
        (folder / "Package.swift").write_text(
            f'// swift-tools-version: 6.0\nimport PackageDescription\nlet package = Package(name: "{folder.name}", '
            f'products: [.library(name: "{folder.name}", targets: ["{folder.name}"])], '
            f'dependencies: [{more}], targets: [.target(name: "{folder.name}")])\n'
        )
    run("git", "init", "--quiet", dependency)
    run(*git, "add", ".")
    run(*git, "commit", "--quiet", "--message", "one")
    run(*git, "tag", "1.0.0")
    resolve = ["make", "--file", ROOT / "Makefile", "--directory", package, "resolution"]
    run(*resolve)
    first = (package / "Package.resolved").read_text()
    run(*git, "tag", "1.1.0")
    run(*resolve)
    assert (package / "Package.resolved").read_text() == first and '"version" : "1.0.0"' in first
    (package / "Package.resolved").unlink()
    run("rm", "-rf", package / ".build")
    run(*resolve)
    assert '"version" : "1.1.0"' in (package / "Package.resolved").read_text()


def test_the_workflows_run_targets_that_exist():
    steps = [step for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job.get("steps", [])]
    targets = {target for step in steps for target in re.findall(r"(?m)^make ([a-z-]+)", step.get("run", ""))}
    assert {"release", "test-package"} <= targets
    for target in targets:
        run("make", "--dry-run", target, cwd=ROOT)
