"""Three NATS servers of one cluster, as `herald cluster nats-conf` configures them, all on the server's core."""

import json
import pathlib
import re
import shutil
import subprocess
import time
import urllib.request

from machine import ON_SERVER_CORE, RELEASE, exact_cpu_seconds, private_memory
from nats_figures import NATS_SERVER

LOOPBACK = ("127.77.0.1", "127.77.0.2", "127.77.0.3")
CLIENT, MONITOR, PROFILER = 4222, 8222, 8322


class Trio:
    """Runs as long as its `with` lasts. Clients need no key.

    `enter` gives the words before the command line of each server, by its number.
    """

    def __init__(self, folder, addresses=LOOPBACK, enter=lambda number: []):
        self.folder, self.addresses, self._enter = folder, addresses, enter
        self.processes = []

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        subprocess.run(
            [RELEASE / "herald", "cluster", "nats-conf", "--peers", ",".join(self.addresses), "--output", self.folder,
             "--store", self.folder / "stores"],
            check=True, capture_output=True,
        )
        try:
            for number, address in enumerate(self.addresses):
                self._start(number, self.folder / f"nats-{address}.conf")
            self._await()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, number, path):
        path.write_text(path.read_text().split("# Herald's only user")[0] + f"\nprof_port: {PROFILER}\n")
        with path.with_suffix(".log").open("w") as log:
            self.processes.append(subprocess.Popen(
                [*ON_SERVER_CORE, *self._enter(number), str(NATS_SERVER), "--config", str(path)], stdout=log, stderr=subprocess.STDOUT,
            ))

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    @property
    def urls(self):
        return [f"nats://{address}:{CLIENT}" for address in self.addresses]

    def cpu_seconds(self):
        """Processor time of all three so far."""
        return sum(exact_cpu_seconds(process.pid) for process in self.processes)

    def memory(self):
        """Private memory of each, in bytes."""
        return [private_memory(process.pid) for process in self.processes]

    def live(self):
        """The part of each one's heap that is in use after a garbage collection, in bytes."""
        return [int(re.search(r"# HeapAlloc = (\d+)", self._read(address, PROFILER, "debug/pprof/heap?gc=1&debug=1"))[1])
                for address in self.addresses]

    def ask(self, address, name):
        return json.loads(self._read(address, MONITOR, name))

    def _read(self, address, port, name):
        with urllib.request.urlopen(f"http://{address}:{port}/{name}", timeout=30) as answer:
            return answer.read().decode()

    def _last_line(self):
        lines = [line for path in sorted(self.folder.glob("*.log")) for line in path.read_text(errors="replace").splitlines()]
        return lines[-1] if lines else "they say nothing"

    def _await(self):
        """Waits until each server is healthy, and all agree on the leader that makes streams."""
        end = time.monotonic() + 60
        while True:
            # Other servers may answer at these addresses.
            if ended := any(process.poll() is not None for process in self.processes):
                break
            try:
                leaders = {self.ask(address, "jsz?meta=1").get("meta_cluster", {}).get("leader") for address in self.addresses}
                healthy = all(self.ask(address, "healthz")["status"] == "ok" for address in self.addresses)
                if len(leaders) == 1 and None not in leaders and healthy:
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the nats-servers {'end at once' if ended else 'do not start'}: {self._last_line()} ({self.folder})")
