"""Nodes of a cluster as far as claims and rings go: processes of `RingBench`, which obey lines."""

import json
import os
import queue
import subprocess
import threading
import time

from machine import ON_LOAD_CORES, RELEASE, exact_cpu_seconds, private_memory


class RingNode:
    """One node, on the load's cores. `way` is none, subscriptions or table."""

    def __init__(self, name, url, way, log):
        self.name, self.events, self._answers = name, [], queue.Queue()
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*ON_LOAD_CORES, RELEASE / "RingBench", "--server", url, "--name", name, "--way", way], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "NIO_SINGLETON_GROUP_LOOP_COUNT": "1"},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            found = json.loads(line)
            if "event" in found:
                self.events.append((found["event"], found["at"] / 1e9))
            else:
                self._answers.put(found)
        self._answers.put(None)

    def say(self, *words):
        """Gives an order; `answer` waits for its end."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self, timeout=300):
        found = self._answers.get(timeout=timeout)
        if found is None:
            raise RuntimeError(f"RingBench {self.name} ended")
        return found

    def do(self, *words):
        self.say(*words)
        return self.answer()

    def await_events(self, event, count, timeout=120):
        """When the last of so many events came, by the monotonic clock."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = [moment for name, moment in self.events if name == event]
            if len(found) >= count:
                return found[count - 1]
            time.sleep(0.005)
        raise RuntimeError(f"RingBench {self.name}: {count} times {event} wanted, seen: {self.events[-5:]}")

    def cpu_seconds(self):
        return exact_cpu_seconds(self.process.pid)

    def memory(self):
        return private_memory(self.process.pid)

    def close(self):
        self.process.kill()
        self.process.wait()


def each(nodes, *words):
    """Gives the same order to several nodes at once, each with a share of the devices: `words` has FIRST and COUNT of all."""
    order, first, count, window = words
    share = count // len(nodes)
    for number, node in enumerate(nodes):
        node.say(order, first + number * share, share, window)
    answers = [node.answer() for node in nodes]
    total = {}
    for answer in answers:
        for outcome, times in answer.items():
            if outcome != "at":
                total[outcome] = total.get(outcome, 0) + times
    return total
