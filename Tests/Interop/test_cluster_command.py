"""`herald cluster`: the configuration that it makes for NATS servers, and the state that it shows of them."""

import concurrent.futures
import contextlib
import json
import os
import subprocess

import pytest

from nats_servers import CLIENT, MONITOR, NATS_SERVER, free_addresses
from parties import assert_accepted
from provider import Provider, listening_device
from service import HERALD, PATIENCE, ROOT, eventually, herald


@contextlib.contextmanager
def running(configurations):
    """NATS servers with these configuration files."""
    with contextlib.ExitStack() as stack:
        for path in configurations:
            log = stack.enter_context(path.with_suffix(".log").open("w"))
            command = ["setpriv", "--pdeathsig", "KILL", str(NATS_SERVER), "--config", str(path)]
            server = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))
            stack.callback(server.kill)
        yield


@pytest.fixture
def made(tmp_path):
    """The files of three servers on free addresses, and the options of a node that uses them."""
    peers = free_addresses(3)
    folder = tmp_path / "nats"
    result = herald(
        "cluster", "nats-conf", "--peers", ",".join(peers), "--output", str(folder), "--store", str(tmp_path / "stores")
    )
    options = [
        "--cluster", ",".join(f"nats://{peer}:{CLIENT}" for peer in peers),
        "--cluster-monitor", ",".join(f"http://{peer}:{MONITOR}" for peer in peers),
        "--cluster-credentials", str(folder / "herald.nk"),
    ]
    return peers, folder, options, result


#: Runs a command on a machine whose name cannot be a node's.
NAMELESS = ("unshare", "--uts", "sh", "-c", 'echo "(none)" > /proc/sys/kernel/hostname; exec "$@"', "sh")


def status(*options, prefix=()):
    result = herald("cluster", "status", "--json", *options, check=False, prefix=prefix)
    return result.returncode, json.loads(result.stdout) if result.stdout else None, result.stderr


@pytest.mark.slow
def test_the_servers_take_the_configuration_and_admit_nobody_but_the_key(made, tmp_path):
    peers, folder, options, result = made
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["herald.nk", *sorted(f"nats-{peer}.conf" for peer in peers)]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}, "passwords and keys are for one user"
    assert all(str(file) in result.stdout for file in files) and "herald serve --cluster" in result.stdout
    with running(file for file in files if file.suffix == ".conf"):
        def servers():
            _, report, _ = status(*options)
            return report["servers"] if report and all(server["name"] for server in report["servers"]) else None

        found = eventually(servers, 2 * PATIENCE, "three servers")
        assert [server["name"] for server in found] == peers
        assert all(server["sync_always"] for server in found)

        def problems():
            code, report, _ = status(*options, prefix=NAMELESS)
            return code == 1 and report and [problem.split(":")[0] for problem in report["problems"]]

        # No node was ever here, and this machine's name may be none for a node.
        eventually(lambda: problems() == ["the NATS servers have no streams of Herald's"], what="the problem alone")
        stranger = tmp_path / "stranger.nk"
        other = tmp_path / "other"
        herald("cluster", "nats-conf", "--peers", "127.0.0.1", "--output", str(other))
        stranger.write_text((other / "herald.nk").read_text())
        stranger.chmod(0o600)

        def refused():
            code, report, error = status(*options[:-1], str(stranger))
            assert code == 1 and report is None, error
            return "uthoriz" in error

        eventually(refused, what="the word of the servers, and not that of a limit of time")


@pytest.mark.slow
def test_servers_and_nodes_show_each_other_certificates(tmp_path, fresh):
    peers = free_addresses(3)
    tls, folder = tmp_path / "tls", tmp_path / "nats"
    subprocess.run([ROOT / "Examples/Cluster/certificates", tls, *peers], check=True, timeout=PATIENCE)
    result = herald(
        "cluster", "nats-conf", "--peers", ",".join(peers), "--output", folder, "--store", tmp_path / "stores",
        "--tls", tls / "SERVER",
    )
    assert "--cluster tls://" in result.stdout and "--cluster-certificate" in result.stdout
    for peer in peers:
        # On machines of their own, all have the same path.
        path = folder / f"nats-{peer}.conf"
        path.write_text(path.read_text().replace("SERVER", peer))
    servers = ["--cluster", ",".join(f"tls://{peer}" for peer in peers), "--cluster-credentials", str(folder / "herald.nk")]
    servers += ["--cluster-monitor", ",".join(f"http://{peer}:{MONITOR}" for peer in peers)]
    options = [*servers, "--cluster-ca", str(tls / "ca.pem"), "--cluster-certificate", str(tls / "herald.pem")]
    with running(folder.glob("*.conf")):
        node = fresh(*options).start()
        with Provider(node, node.provider_certificate()) as provider, listening_device(node) as device:
            assert_accepted(provider.push(device.token))
            device.next()
        eventually(lambda: status(*options)[0] == 0, what="a whole cluster")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            stranger = threads.submit(status, *options[:-2])
            distrustful = threads.submit(status, *servers)
            assert "the server asks for a certificate of this node" in stranger.result()[2]
            assert "no authority of cluster-ca has signed" in distrustful.result()[2]


def test_the_files_are_printed_without_a_folder_and_never_overwritten(made):
    _, folder, _, _ = made
    printed = herald("cluster", "nats-conf", "--peers", "a,b,c").stdout
    assert printed.count("sync_interval: always") == 3 and "# ---- herald.nk" in printed
    assert "client_advertise: \"b:4222\"" in printed
    again = herald("cluster", "nats-conf", "--peers", folder.name, "--output", str(folder), check=False)
    assert again.returncode == 1 and "already exists" in again.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        (["--peers", "a,b"], "odd number"),
        (["--peers", "a,a,b"], "twice"),
        (["--peers", "a b,c,d"], "not a host name"),
        (["--peers", ""], "names no server"),
        (["--peers", "a", "--store-size", "0"], "at least 1"),
    ],
)
def test_wrong_options_are_told(options, message):
    result = herald("cluster", "nats-conf", *options, check=False)
    assert result.returncode == 64 and message in result.stderr


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached_is_told():
    address = free_addresses(1)[0]
    code, _, error = status("--cluster", f"nats://{address}")
    assert code == 1 and "no NATS server" in error and "start the servers" in error


def test_without_a_cluster_the_setting_is_named():
    code, _, error = status()
    assert code == 1 and "--cluster" in error


def test_the_example_runs_a_cluster(tmp_path):
    """The script has addresses and ports of its own, so it runs in a network of its own."""
    script = """
        ip link set lo up
        Examples/Cluster/run "$1" > "$1.out" 2>&1 &
        for attempt in $(seq 600); do grep -q '^    curl' "$1.out" && break; sleep 0.2; done
        bash -c "$(grep '^    curl' "$1.out")"
        for attempt in $(seq 300); do grep -q 'received .*Hello' "$1.out" && break; sleep 0.2; done
        kill %1
        wait
        cat "$1.out"
    """
    result = subprocess.run(
        ["unshare", "--net", "bash", "-c", script, "bash", str(tmp_path / "c")], cwd=ROOT, capture_output=True, text=True,
        timeout=4 * PATIENCE, env={**os.environ, "HERALD_BINARY": str(HERALD), "NATS_SERVER": str(NATS_SERVER)},
    )
    assert "HTTP/2 200" in result.stdout and 'received {"aps":{"alert":"Hello from curl"}}' in result.stdout, result


@pytest.mark.parametrize("setting", ["--cluster-key", "--cluster-credentials"])
@pytest.mark.parametrize("mode", [0o666, 0o644, 0o620])
def test_files_with_a_secret_that_others_may_change_are_refused(tmp_path, setting, mode):
    path = tmp_path / "secret"
    path.write_text("x")
    path.chmod(mode)
    options = ("--cluster", "nats://127.0.0.1:1", "--cluster-unverified", setting, path)
    result = herald("serve", "--data", tmp_path / "data", *options, check=False)
    assert result.returncode != 0 and f"is open to others (mode 0{mode:o}): run `chmod 600 {path}`" in result.stderr
