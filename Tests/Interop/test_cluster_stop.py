"""A node ends when it is told to, in a time that is bounded, also while no NATS server answers."""

import signal
import subprocess
import time

import pytest

from parties import assert_accepted
from provider import Provider, listening_device
from service import HERALD, PATIENCE, eventually
from test_cluster_node import options, trio

GRACE = 3
#: The connection to NATS is closed 2 s after the grace period; the rest is for a busy machine.
BOUND = GRACE + 50


def end(process):
    """Stops a process as an operator does: its exit status."""
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    status = process.wait(timeout=PATIENCE)
    took = time.monotonic() - begun
    assert took < BOUND, f"it took {took:.1f} s to end"
    return status


def starting(folder, *more):
    """A service that begins to start, with its log in a file."""
    folder.mkdir()
    log = folder / "log"
    command = [str(HERALD), "serve", "--data", str(folder / "data"), *more]
    for port in ("api", "binary", "feedback", "device", "activation", "console"):
        command += [f"--{port}-port", "0"]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output), log


@pytest.fixture
def node(trio, fresh):
    return fresh(*options(trio), "--grace-period", f"{GRACE}s").start()


def test_a_node_ends_in_time_while_no_server_answers(trio, node):
    device = listening_device(node)
    with Provider(node, node.provider_certificate()) as provider:
        assert_accepted(provider.push(device.token, {"id": "before"}))
        eventually(lambda: device.messages)
        for server in trio.servers:
            server.pause()
        try:
            # Its outcome is unknown for longer than the grace period.
            provider.send(device.token, {"id": "while"})
            assert end(node.process) == 0, node.lines[-5:]
        finally:
            for server in trio.servers:
                server.resume()
    device.stop()


def test_a_node_ends_in_time_without_a_majority_of_the_servers(trio, node):
    for server in trio.servers[:2]:
        server.kill()
    assert end(node.process) == 0, node.lines[-5:]


def test_a_node_that_waits_at_its_start_ends_when_it_is_told_to(trio, node, tmp_path):
    # Another folder has taken its name: the node waits for a sign of life of that one.
    key = ["--cluster-key", str(node.data / "trust" / "cluster.key")]
    # Again, if the machine pauses until the wait is over.
    for attempt in range(5):
        process, log = starting(tmp_path / f"same{attempt}", *options(trio), *key)
        eventually(lambda: "waiting 15 s for a sign of life" in log.read_text() or process.poll() is not None)
        status = end(process)
        if "stopped before the start was complete" in log.read_text():
            break
    assert status == 0 and "stopped before the start was complete" in log.read_text(), log.read_text()
    # No server answers any more.
    for server in trio.servers:
        server.pause()
    try:
        process, log = starting(tmp_path / "other", *options(trio, "two"), *key)
        eventually(lambda: "connecting to NATS" in log.read_text())
        assert end(process) == 0, log.read_text()
    finally:
        for server in trio.servers:
            server.resume()
