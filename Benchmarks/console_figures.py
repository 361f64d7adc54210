"""The console: its page while 1,000 lines of the journal come a second, and the cost of those who watch."""

import contextlib
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import loads
from loads import Requests, counted
from machine import RELEASE, ROOT, WORK, undisturbed
from provider_figures import DAY, TOPIC, registered
from servers import Herald

#: The bars: of the longest task and of the slowest input, in milliseconds, and of the heap's growth, in MiB.
TASK_MS, INPUT_MS, HEAP_MIB = 100, 100, 10
VIEWERS = 5
#: Pairs with and without viewers. A counted number of requests costs a fifth more or less each time, as its commits are larger or smaller.
PAIRS = 60
#: Requests a second. Each is three lines: received, stored, and the one before replaced.
RATE = 400
#: Seconds until the page has as many lines as it keeps.
WARM_UP = 15
#: The browser tells of tasks from 50 ms on, and of inputs from 16 ms on.
LEAST_TASK, LEAST_INPUT = 50, 16
OBSERVE = f"""
window.tasks = []; window.inputs = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration))).observe({{type: "longtask"}});
new PerformanceObserver((list) => inputs.push(...list.getEntries().filter((one) => one.name.startsWith("key")).map((one) => one.duration)))
  .observe({{type: "event", durationThreshold: {LEAST_INPUT}}});
"""


class Viewers:
    """Readers of the stream of events for as long as the `with` lasts; they count its lines."""

    def __init__(self, herald, count):
        self._address = f"http://127.0.0.1:{herald.port('console')}/v1/events"
        self._token = (herald.folder / "run" / "admin.token").read_text().strip()
        self._count, self._streams = count, []
        self.lines = 0

    def __enter__(self):
        for _ in range(self._count):
            stream = self._stream()
            self._streams.append(stream)
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        return self

    def _stream(self):
        """A stream; the places of former viewers are free a moment after they have left."""
        request = urllib.request.Request(self._address, headers={"authorization": f"Bearer {self._token}"})
        end = time.monotonic() + 30
        while True:
            try:
                return urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                if error.code != 429 or time.monotonic() > end:
                    raise
                time.sleep(int(error.headers["retry-after"]))

    def _read(self, stream):
        is_first = stream is self._streams[0]
        kind = None
        with contextlib.suppress(OSError, ValueError, AttributeError):
            for line in stream:
                if line.startswith(b"event: "):
                    kind = line[7:].strip()
                elif is_first and line.startswith(b"data: ") and kind in (b"lines", b"skipped"):
                    data = json.loads(line[6:])
                    self.lines += data["count"] if kind == b"skipped" else len(data["items"]) + data["more"]

    def __exit__(self, *_):
        for stream in self._streams:
            # Ends the read of the other thread, too.
            with contextlib.suppress(OSError, AttributeError):
                stream.fp.raw._sock.shutdown(2)
            stream.close()


class Browser:
    """Chromium on all cores, as people have it, signed in at the page Notifications, for as long as the `with` lasts."""

    def __init__(self, herald):
        # The tests have the browser, and the same Python environment.
        sys.path.append(str(ROOT / "Tests" / "Interop"))
        from screen_page import Page
        self.page = Page()
        link = subprocess.run([str(RELEASE / "herald"), "console", "--data", str(herald.folder)], check=True, capture_output=True, text=True)
        self.page.open(link.stdout.strip().replace("/#", "/notifications#"), ready=".found tr")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.close()

    @property
    def pid(self):
        return self.page.driver.service.process.pid

    def heap(self):
        """The page's heap after a collection, in MiB, and its number of elements."""
        self.page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        used = self.page.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"] / (1 << 20)
        return used, self.page.run("return document.getElementsByTagName('*').length")

    def watch(self, seconds):
        """Types a letter twice a second, and returns the longest task and the slowest answer to a key in milliseconds."""
        self.page.one("#q").click()
        self.page.run(OBSERVE)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.page.press("x")
            time.sleep(0.5)
        tasks, inputs = self.page.run("return [tasks, inputs]")
        return max([LEAST_TASK, *tasks]), max([LEAST_INPUT, *inputs]), len(tasks)


def console(settings, report):
    """A page in Chromium and four other viewers while lines come, then a counted number of requests with and without viewers."""
    first = WORK / "console-first"
    tokens, bearer = registered(settings.identities, settings.gateway_devices, first)
    requests = Requests(WORK / "console-requests", tokens, bearer, TOPIC, int(time.time()) + DAY)
    with Herald(WORK / "console", first) as herald:
        loads.send_each(herald, requests, herald.port("api"), tokens, "console")
        _page(herald, requests, settings.console, report)
        ours, peer = [], []
        for _ in range(PAIRS):
            with Viewers(herald, VIEWERS):
                ours.append(counted(herald, herald.port("api"), requests)["cpu_us"])
            peer.append(counted(herald, herald.port("api"), requests)["cpu_us"])
        report.figure("console_viewers", ours, peer, "us CPU", "unwatched", lower_is_better=True, note=f"{VIEWERS} viewers of all lines")


def _page(herald, requests, seconds, report):
    with Browser(herald) as browser, Viewers(herald, VIEWERS - 1) as viewers, \
            loads.paced(herald, requests, RATE, WARM_UP + seconds + 10):
        time.sleep(WARM_UP)
        before, elements = browser.heap()
        began, lines = time.monotonic(), viewers.lines
        with undisturbed([herald.pid, browser.pid]):
            task, answer, count = browser.watch(seconds)
        rate = (viewers.lines - lines) / (time.monotonic() - began)
        after, elements_after = browser.heap()
    if rate < 1000:
        herald.fail(f"wrote {rate:.0f} lines a second, and 1,000 were wanted")
    report.figure("console_task", [task], [TASK_MS], "ms (longest task)", "bar", lower_is_better=True,
                  note=f"{rate:,.0f} lines/s for {seconds} s; {count} tasks of {LEAST_TASK} ms and more")
    report.figure("console_input", [answer], [INPUT_MS], "ms (slowest key)", "bar", lower_is_better=True)
    report.figure("console_heap", [max(after - before, 0.1)], [HEAP_MIB], "MiB (growth)", "bar", lower_is_better=True,
                  note=f"from {before:.1f} to {after:.1f} MiB, and from {elements} to {elements_after} elements")
