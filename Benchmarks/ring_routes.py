"""A route between two servers breaks, silently: does a ring still arrive, and does anybody notice?

    sudo .build/venv/bin/python -B Benchmarks/ring_routes.py       after Benchmarks/run has built

Each server is in a network namespace of its own. Node n1 at the first server holds devices, n2 at the second rings for them; the
third server reaches both. Prints what happens in each way of docs/decisions/rings.md, second by second where it changes.
"""

import os
import pathlib
import subprocess
import sys
import time

from machine import WORK
from nats_trio import Trio
from ring_nodes import RingNode

ADDRESSES = ("10.98.0.1", "10.98.0.2", "10.98.0.3")
#: Devices that are connected before, those that connect in each second, and the seconds of the break and after it.
BEFORE, EACH, BROKEN, AFTER = 20, 5, 120, 40


def namespaces():
    """A namespace for each server, on one bridge; they end with this process. Gives the processes that hold them."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "addr", "add", "10.98.0.254/24", "dev", "br0")
    run("ip", "link", "set", "br0", "up")
    found = []
    for number, address in enumerate(ADDRESSES):
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        run("ip", "link", "add", f"s{number}", "master", "br0", "type", "veth", "peer", "name", "eth0", "netns", process.pid)
        run("ip", "link", "set", f"s{number}", "up")
        inside(process, "ip", "link", "set", "lo", "up")
        inside(process, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        inside(process, "ip", "link", "set", "eth0", "up")
        found.append(process)
    return found


def run(*command):
    subprocess.run([*map(str, command)], check=True)


def inside(process, *command):
    run("nsenter", "--target", process.pid, "--net", *command)


def cut(machines, verb):
    """Breaks the way between the first two servers, or mends it."""
    for here, there in ((0, 1), (1, 0)):
        inside(machines[here], "ip", "route", verb, "blackhole", f"{ADDRESSES[there]}/32")


def watch(way, machines, log):
    enter = lambda number: ["nsenter", "--target", str(machines[number].pid), "--net"]
    with Trio(WORK / f"routes-{way}", ADDRESSES, enter) as trio:
        nodes = [RingNode(f"n{number + 1}", url, way, log) for number, url in enumerate(trio.urls)]
        try:
            nodes[0].do("streams")
            time.sleep(3)
            nodes[0].do("connect", 1, BEFORE, BEFORE)
            time.sleep(1)
            print(f"{way}: before: {rings(nodes)}", flush=True)
            cut(machines, "add")
            began, last = time.monotonic(), None
            for second in range(BROKEN + AFTER):
                if second == BROKEN:
                    cut(machines, "del")
                    print("  mended", flush=True)
                nodes[0].say("connect", 1000 + second * EACH, EACH, EACH)
                found = rings(nodes)
                claimed = {key: value for key, value in nodes[0].answer().items() if key != "at"}
                state = (found, claimed)
                if state != last:
                    held, known = (node.do("count")[key] for node, key in ((nodes[0], "held"), (nodes[1], "table")))
                    print(f"  {time.monotonic() - began:5.1f} s: rings {found}, claims {claimed}; n1 holds {held}, n2 knows {known}",
                          flush=True)
                last = state
                time.sleep(max(0, began + second + 1 - time.monotonic()))
            print(f"  events of n2: {[(event, round(at - began, 1)) for event, at in nodes[1].events if at > began]}")
        finally:
            for node in nodes:
                node.close()


def rings(nodes):
    answer = nodes[1].do("ring", 1, BEFORE, BEFORE)
    return {key: value for key, value in answer.items() if key != "at"}


def main():
    if "inside" not in sys.argv:
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", __file__, "inside"])
    WORK.mkdir(parents=True, exist_ok=True)
    machines = namespaces()
    with (WORK / "routes.log").open("w") as log:
        for way in ("subscriptions", "table"):
            watch(way, machines, log)


main()
