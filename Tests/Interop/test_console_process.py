"""The process's use of resources, under the names that dashboards know."""

import glob
import http.client
import os
import time
import urllib.request

from service import PATIENCE, eventually


def process_metrics(service):
    with urllib.request.urlopen(f"http://127.0.0.1:{service.listeners['console']}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE process_")}
    values = {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("process_")}
    assert kinds.keys() == values.keys()
    return kinds, values


def test_process_metrics_match_the_system(fresh, enroll):
    before = time.time()
    service = fresh().start()
    kinds, values = process_metrics(service)
    assert kinds == {
        "process_cpu_seconds_total": "counter", "process_open_fds": "gauge", "process_max_fds": "gauge",
        "process_resident_memory_bytes": "gauge", "process_virtual_memory_bytes": "gauge",
        "process_start_time_seconds": "gauge",
    }
    # The system counts the start in hundredths of a second since its own start, which it tells in whole seconds.
    assert before - 2 <= values["process_start_time_seconds"] <= time.time() + 2
    with open(f"/proc/{service.pid}/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    assert 0.5 < values["process_resident_memory_bytes"] / resident < 2
    assert values["process_virtual_memory_bytes"] > values["process_resident_memory_bytes"]
    assert values["process_open_fds"] < values["process_max_fds"]
    assert values["process_cpu_seconds_total"] > 0
    links = [enroll(service).connect() for _ in range(5)]
    after = process_metrics(service)[1]
    assert after["process_open_fds"] >= values["process_open_fds"] + 5
    assert after["process_cpu_seconds_total"] > values["process_cpu_seconds_total"]
    for link in links:
        link.close()
    eventually(lambda: process_metrics(service)[1]["process_open_fds"] < after["process_open_fds"])


def test_the_allocator_returns_memory(shared):
    """A thread of the allocator's own: its settings were read, too."""
    maps = open(f"/proc/{shared.pid}/maps", encoding="utf-8").read()
    assert "libjemalloc" in maps

    def threads():
        return {open(path, encoding="utf-8").read().strip() for path in glob.glob(f"/proc/{shared.pid}/task/*/comm")}

    eventually(lambda: "jemalloc_bg_thd" in threads(), what="the allocator's thread")


def ask(service, host, path="/health"):
    """The status of a request with this `Host`."""
    connection = http.client.HTTPConnection("127.0.0.1", service.listeners["console"], timeout=PATIENCE)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    return connection.getresponse().status


def test_a_page_of_another_site_reads_nothing(fresh):
    """DNS rebinding: the page's own name resolves to the loopback address."""
    service = fresh("--hostname", "push.example.com").start()
    for host in ("localhost", "127.0.0.1:2190", "console.localhost", "push.example.com:2190", "[::1]"):
        assert ask(service, host) == 200, host
    for host in ("attacker.example", "192.0.2.1", "localhost.attacker.example", ""):
        for path in ("/health", "/metrics", "/", "/v1/status"):
            assert ask(service, host, path) == 421, (host, path)
