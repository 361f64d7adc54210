"""Packages that use the client libraries: what they fetch and compile. Imports that the manifest refuses. Nothing is compiled."""

import json
import os
import re
import shutil
import subprocess

import pytest

from service import PATIENCE, ROOT

LIBRARIES = ["HeraldDevice", "HeraldJSON", "HeraldModel", "HeraldPhone", "HeraldProvider", "HeraldTesting"]
SHARED = ["HeraldIdentity", "HeraldModel", "HeraldWire"]
MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Outside",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "herald", path: "%s", traits: [])],
    targets: [%s]
)
"""


def swift(folder, tool, *command, **options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HERALD_")}
    command = ["swift", tool, "--package-path", folder, *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE, **options)


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A package with one program for each library."""
    folder = tmp_path_factory.mktemp("outside") / "Outside"
    for library in LIBRARIES:
        (folder / "Sources" / f"{library}User").mkdir(parents=True)
        (folder / "Sources" / f"{library}User" / "main.swift").write_text(f"import {library}\n")
    targets = [f'.executableTarget(name: "{name}User", dependencies: [.product(name: "{name}", package: "herald")])' for name in LIBRARIES]
    (folder / "Package.swift").write_text(MANIFEST % (ROOT, ", ".join(targets)))
    return folder


def resolved(folder):
    """The packages that a package resolves, Herald among them."""
    # The versions that Herald itself was built with need no network.
    if (ROOT / "Package.resolved").exists():
        shutil.copy(ROOT / "Package.resolved", folder)
    graph = json.loads(swift(folder, "package", "show-dependencies", "--format", "json", check=True).stdout)
    found, todo = set(), list(graph["dependencies"])
    while todo:
        package = todo.pop()
        found.add(package["identity"])
        todo += package["dependencies"]
    return found


@pytest.mark.slow
def test_the_client_libraries_resolve_at_most_14_packages(outside):
    found = resolved(outside)
    assert {"swift-nio", "swift-nio-ssl"} <= found and len(found) <= 14, sorted(found)


@pytest.mark.slow
def test_a_package_with_other_dependencies_of_the_service_resolves(tmp_path):
    """A trait that Herald asks of a shared dependency counts for whoever uses it, too: only the command may ask for one."""
    folder = shutil.copytree(ROOT / "Examples" / "KitchenTimer", tmp_path / "KitchenTimer")
    manifest = (folder / "Package.swift").read_text()
    (folder / "Package.swift").write_text(manifest.replace('path: "../.."', f'path: "{ROOT}"'))
    found = resolved(folder)
    assert "async-http-client" in found and not {"yams", "grdb.swift"} & found


def compiled(plan, target):
    """The modules that a build of a target compiles, by the build plan that SwiftPM has written."""
    makers = {}
    for command in re.split(r'\n  (?=")', plan[plan.index("\ncommands:"):])[1:]:
        inputs, outputs = (re.search(rf"(?m)^    {kind}: (\[.*\])$", command) for kind in ("inputs", "outputs"))
        for output in json.loads(outputs[1]):
            makers[output] = command.split('"')[1], json.loads(inputs[1])
    modules, seen = set(), set()
    todo = [output for output in makers if re.fullmatch(rf"<{target}-.*-debug\.(exe|module)>", output)]
    assert todo
    while todo:
        node = todo.pop()
        if node not in makers or node in seen:
            continue
        seen.add(node)
        command, inputs = makers[node]
        modules |= set(re.findall(r"^C\.(Herald\w+)-", command))
        todo += inputs
    return modules - {target}


def test_the_client_libraries_compile_nothing_of_the_service(outside):
    swift(outside, "build", "--print-manifest-job-graph", check=True)
    plan = (outside / ".build" / "debug.yaml").read_text()
    device = {"HeraldDevice", *SHARED}
    phone = {"HeraldPhone", "HeraldJSON", *device}
    wanted = {
        "HeraldJSON": {"HeraldJSON"}, "HeraldModel": {"HeraldModel"}, "HeraldProvider": {"HeraldProvider", "HeraldJSON", *SHARED},
        "HeraldDevice": device, "HeraldPhone": phone, "HeraldTesting": {"HeraldTesting", *phone},
    }
    assert {library: compiled(plan, f"{library}User") for library in LIBRARIES} == wanted


def test_the_client_libraries_need_no_trait():
    """A product of a trait would be missing where the trait is: SwiftPM says nothing, and the compiler of the user does."""
    manifest = json.loads(swift(ROOT, "package", "--ignore-lock", "dump-package", check=True).stdout)
    targets = {target["name"]: [next(iter(one.values())) for one in target["dependencies"]] for target in manifest["targets"]}
    seen, todo = set(), list(LIBRARIES)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for dependency in targets.get(name, []):
            assert "traits" not in (dependency[-1] or {}), f"{name} needs {dependency[0]}"
            todo.append(dependency[0])
    assert {"HeraldDevice", "HeraldIdentity", "NIOSSL"} <= seen


def changed(folder, more):
    """SwiftPM's answer to Herald's manifest with more targets or dependencies."""
    manifest = (ROOT / "Package.swift").read_text()
    assert manifest.count("\nlet folders") == 1
    (folder / "Package.swift").write_text(manifest.replace("\nlet folders", f"\n{more}\nlet folders"))
    return swift(folder, "package", "dump-package")


def test_every_dependency_takes_all_versions_of_its_major(tmp_path):
    """A narrower requirement would bind each package that uses the client libraries."""
    packages = json.loads(changed(tmp_path, "").stdout)["dependencies"]
    for package in packages:
        (source,) = package["sourceControl"]
        (versions,) = source["requirement"]["range"]
        assert versions["upperBound"] == f"{int(versions['lowerBound'].split('.')[0]) + 1}.0.0", source["identity"]


@pytest.mark.parametrize(("importer", "imported"), [
    ("HeraldIdentity", "HeraldTrust"), ("HeraldProvider", "HeraldTrust"), ("HeraldDevice", "HeraldProvider"),
    ("HeraldRelay", "HeraldPhone"), ("HeraldCluster", "HeraldStores"), ("HeraldGateway", "HeraldCluster"),
])
def test_an_import_across_the_folders_is_refused(tmp_path, importer, imported):
    for dependency in (f'"{imported}"', f'.target(name: "{imported}", condition: .when(platforms: [.linux]))'):
        answer = changed(tmp_path, f'package.targets.first {{ $0.name == "{importer}" }}?.dependencies.append({dependency})')
        assert answer.returncode != 0
        assert f"{importer} may not import {imported}: docs/architecture.md has the table of folders" in answer.stderr


def test_a_test_library_and_the_composition_root_import_across_the_folders(tmp_path):
    """The table's exceptions."""
    more = """for target in package.targets where target.name == "HeraldTesting" { target.dependencies.append("HeraldProvider") }
        package.targets.append(herald(.service, "HeraldNew", ["HeraldMailbox"]))"""
    assert changed(tmp_path, more).returncode == 0
