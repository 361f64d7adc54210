"""Fresh roots for the packages, from one root that is made once: `.build/package-root`."""

import hashlib
import os
import pathlib
import subprocess

import pytest

from machine import ROOT, Machine

PACKAGES = ROOT / ".build" / "package"
CACHE = ROOT / ".build" / "package-root"
#: Packages that the examples need.
OTHERS = ("polkitd", "sudo")


def only(pattern):
    """The one file of that name that `make package` made."""
    found = list(PACKAGES.glob(pattern))
    assert len(found) == 1, f"make package makes one {pattern}, and there are {found}"
    return found[0]


@pytest.fixture(scope="session")
def packages():
    """The Debian packages by name."""
    return {name: only(f"{name}_*.deb") for name in ("herald", "herald-server", "herald-relay", "herald-agent")}


@pytest.fixture(scope="session")
def dependencies(packages):
    """The packages that Herald's need, the first of each alternative."""
    fields = [subprocess.check_output(["dpkg-deb", "--field", file, "Depends"], text=True) for file in packages.values()]
    names = {field.split("|")[0].split("(")[0].strip() for field in ",".join(fields).split(",")}
    return sorted(names - packages.keys())


@pytest.fixture(scope="session")
def base(dependencies):
    """An archive of a Debian that boots. apt has the packages that Herald's need in its cache, and none of them is installed."""
    names = " ".join(sorted({*dependencies, *OTHERS} - {"systemd"}))
    code = pathlib.Path("/etc/os-release").read_text().split("VERSION_CODENAME=")[1].split()[0]
    archive = CACHE / f"{code}-{hashlib.sha256(names.encode()).hexdigest()[:12]}.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part.tar")
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,dbus", "--skip=cleanup/apt",
             f'--customize-hook=APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get --yes --download-only install {names}', code, part],
            check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        part.rename(archive)
    return archive


@pytest.fixture
def fresh_root(base, tmp_path):
    """A fresh root, in a folder."""
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["tar", "--extract", "--numeric-owner", "--file", base, "--directory", root], check=True)
    # The root ends with the test: dpkg need not wait for the disk.
    (root / "etc" / "dpkg" / "dpkg.cfg.d" / "unsafe-io").write_text("force-unsafe-io\n")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost post\n::1 localhost\n")
    yield root
    subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)


@pytest.fixture
def machine(fresh_root, tmp_path):
    machine = Machine(fresh_root, tmp_path / "console.log")
    yield machine
    machine.stop()
