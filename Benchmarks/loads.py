"""The loads of the benchmarks, on the cores that no server has; each figure with the processor time that it took."""

import contextlib
import itertools
import json
import math
import pathlib
import re
import sqlite3
import subprocess
import sys
import time
import urllib.request

from machine import (LOAD_CORES, ON_LOAD_CORES, RELEASE, core_wait_seconds, cpu_seconds, exact_cpu_seconds,
                     undisturbed)

CONNECTIONS, STREAMS = 10, 100
PAYLOAD_BYTES = 300
# Before anything is measured, in seconds.
WARM_UP = 1


class Requests:
    """The requests of h2load: each connection has its own device tokens, so that no two connections share a slot.

    A connection comes back to a token once all of its own were sent; with more than it has streams, the answer to the one
    before has long come by then.
    """

    def __init__(self, folder, tokens, bearer, topic, expiration):
        if len(tokens) < CONNECTIONS * STREAMS:
            raise RuntimeError(f"{len(tokens)} device tokens are too few: a connection would meet itself")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tokens = tokens
        self.body = folder / "body.json"
        empty = json.dumps({"aps": {"alert": ""}})
        self.body.write_text(json.dumps({"aps": {"alert": "x" * (PAYLOAD_BYTES - len(empty))}}))
        self.headers = {"authorization": f"bearer {bearer}", "apns-topic": topic, "apns-push-type": "alert",
                        "apns-priority": "10", "apns-expiration": str(expiration)}

    def commands(self, port, options):
        """One h2load for each connection."""
        return self.spread([port], options)

    def spread(self, ports, options):
        """The same, the connections in turn to some servers."""
        share = len(self.tokens) // CONNECTIONS
        return [self.command(port, self.tokens[place * share:(place + 1) * share], f"{port}-{place}", options)
                for place, port in zip(range(CONNECTIONS), itertools.cycle(ports))]

    def command(self, port, tokens, name, options):
        uris = self.folder / f"uris-{name}"
        if not uris.exists():
            uris.write_text("".join(f"https://127.0.0.1:{port}/3/device/{token}\n" for token in tokens))
        command = [*ON_LOAD_CORES, "h2load", "-c", "1", "-m", str(STREAMS), "-t", "1", "-d", str(self.body), "-i", str(uris)]
        for name, value in self.headers.items():
            command += ["-H", f"{name}: {value}"]
        return command + options


class Window:
    """Processor time of a server and of its load between two moments, in seconds and as shares of one core."""

    def __init__(self, server, load=()):
        self._server, self.pids = server, list(load)
        self._began = self._now()

    @property
    def began(self):
        """The moment of the beginning, by the monotonic clock."""
        return self._began[0]

    def _now(self):
        try:
            return (time.monotonic(), cpu_seconds(self._server), sum(cpu_seconds(pid) for pid in self.pids),
                    core_wait_seconds(self._server))
        except FileNotFoundError as error:
            raise RuntimeError(f"a server or a load ended while it was measured ({error.filename})") from error

    def end(self):
        self.seconds, self.server, self.load, self.waited = (now - then for now, then in zip(self._now(), self._began))
        return self

    def outcome(self, rate):
        """The notes of a rate: CPU in microseconds for each unit, and the load of server and client."""
        per_second = self.server / self.seconds
        return {"rate": rate, "cpu_us": per_second / rate * 1e6 if rate else math.nan, "busy": per_second,
                "load_busy": self.load / self.seconds, "waited": self.waited / self.seconds}


def _start(commands):
    return [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]


def _outputs(processes, timeout):
    try:
        return [process.communicate(timeout=timeout)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


class H2load:
    """h2load for some seconds, as fast as it gets answers; `with` begins it, `end` gives the outcome."""

    def __init__(self, server, port, requests, seconds):
        self._seconds = seconds
        self._server = server
        self._processes = _start(
            requests.commands(port, ["-D", str(seconds), "--warm-up-time", str(WARM_UP)]))
        # All are warm, and none has ended, while the window lasts.
        self._began = time.monotonic()
        time.sleep(WARM_UP + 0.4)
        self.window = Window(server.pid, [process.pid for process in self._processes])

    def end(self):
        time.sleep(max(0.0, self._began + WARM_UP + self._seconds - 0.3 - time.monotonic()))
        self.window.end()
        done = 0
        for output in _outputs(self._processes, 60):
            codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
            errors = re.search(r"(\d+) errored, (\d+) timeout", output)
            if not codes:
                raise RuntimeError(f"h2load said: {output.strip()[-300:]}")
            if any(int(codes[place]) for place in (2, 3, 4)) or any(int(errors[place]) for place in (1, 2)):
                self._server.fail(f"did not answer 200 to all: {codes[0]}; {errors[0]}")
            done += int(codes[1])
        return self.window.outcome(done / self._seconds)


def h2load(server, port, requests, seconds):
    return H2load(server, port, requests, seconds).end()


# Requests of `counted`; a second or two.
COUNTED = 60_000


def counted(server, port, requests):
    """The server's CPU time for each of a number of requests, in microseconds: exact, where a window of time is not."""
    before = exact_cpu_seconds(server.pid)
    send_counted([server], [port], requests)
    # The log is copied into the file after the last answer.
    time.sleep(0.1)
    return {"cpu_us": (exact_cpu_seconds(server.pid) - before) / COUNTED * 1e6}


def send_counted(servers, ports, requests):
    """That number of requests, the connections in turn to these servers; ends when all are answered."""
    for output, server in zip(_outputs(_start(requests.spread(ports, ["-n", str(COUNTED // CONNECTIONS)])), 120), itertools.cycle(servers)):
        if f"{COUNTED // CONNECTIONS} 2xx" not in output:
            server.fail(f"did not answer 200 to all: {output.strip()[-300:]}")


class Sender:
    """One process that sends as fast as it gets answers, on one core of the loads; measured is that process itself."""

    CONNECTIONS, STREAMS = 4, 250

    def __init__(self, server, command, pattern, seconds):
        process = subprocess.Popen(["taskset", "-c", str(LOAD_CORES[0]), *map(str, command)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        time.sleep(WARM_UP + 0.4)
        window = Window(process.pid, [server.pid])
        time.sleep(max(0.0, seconds - 0.7))
        window.end()
        (output,) = _outputs([process], 60)
        done = re.search(pattern, output)
        if process.returncode or not done:
            raise RuntimeError(f"{command[0]} said: {output.strip()[-300:]}")
        self.found = done
        self.outcome = window.outcome(int(done[1]) / seconds)


def client(server, requests, key, team, seconds, keep=0):
    """The client library's rate, and its own processor time; with `keep` each notification is stored for so many seconds."""
    tokens = requests.folder / "tokens"
    tokens.write_text("\n".join(requests.tokens))
    command = [RELEASE / "ClientBench", "--port", server.port("api"), "--ca", server.folder / "ca.pem",
               "--tokens", tokens, "--key", key, "--team", team, "--topic", requests.headers["apns-topic"],
               "--payload", requests.body, "--seconds", seconds, "--connections", Sender.CONNECTIONS,
               "--at-once", Sender.CONNECTIONS * Sender.STREAMS, "--keep", keep]
    sender = Sender(server, command, r"answered (\d+) p50 (\S+) p99 (\S+)", seconds)
    return {**sender.outcome, "p50_ms": float(sender.found[2]), "p99_ms": float(sender.found[3])}


def relay(server, requests, key, team, rows):
    """A queue of so many rows, drained by one `herald relay run` on one core: from its start until the last row is done."""
    queue = requests.folder / "queue.db"
    for file in requests.folder.glob("queue.db*"):
        file.unlink()
    database = ["--database", f"sqlite://{queue}"]
    schema = subprocess.run([RELEASE / "herald", "relay", "schema", *database], check=True, capture_output=True, text=True)
    topic, expiration = requests.headers["apns-topic"], int(requests.headers["apns-expiration"])
    with contextlib.closing(sqlite3.connect(queue)) as connection:
        connection.executescript(schema.stdout)
        payload = requests.body.read_text()
        connection.executemany(
            "INSERT INTO push_queue (device_token, topic, payload, expiration) VALUES (?, ?, ?, ?)",
            [(requests.tokens[place % len(requests.tokens)], topic, payload, expiration) for place in range(rows)])
        connection.commit()
    command = ["taskset", "-c", LOAD_CORES[0], RELEASE / "herald", "relay", "run", *database, "--topic", topic, "--key", key,
               "--team", team, "--service", f"localhost:{server.port('api')}", "--ca", server.folder / "ca.pem",
               "--relay-port", "0", "--log-level", "warning"]
    with (requests.folder / "relay.log").open("ab") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        window = Window(process.pid, [server.pid])
        address = next((line.split()[-1] for line in process.stdout if line.startswith("relay ")), None)
        done = 0
        # Its own count, for a look into the file would lock it out.
        while address and done < rows and process.poll() is None and time.monotonic() - window.began < 300:
            time.sleep(0.05)
            with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
                counts = re.findall(r'^herald_relay_rows_total{status="(\w+)"} (\d+)$', answer.read().decode(), re.M)
            done = sum(int(count) for _, count in counts)
        window.end()
        times = _one_by_one(queue, 100)
    finally:
        process.terminate()
        process.wait(timeout=60)
    with contextlib.closing(sqlite3.connect(queue)) as connection:
        (sent,) = connection.execute("SELECT count(*) FROM push_queue WHERE status = 'sent'").fetchone()
    if sent != rows + len(times):
        raise RuntimeError(f"the relay sent {sent:,} of {rows:,} rows: {requests.folder / 'relay.log'}")
    return {**window.outcome(rows / window.seconds), "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}


def _one_by_one(queue, count):
    """Milliseconds from the commit of a row until another program reads that it was sent, each row after the one before."""
    times = []
    with contextlib.closing(sqlite3.connect(queue, timeout=10, isolation_level=None)) as connection:
        for _ in range(count):
            row = connection.execute(
                "INSERT INTO push_queue (device_token, topic, payload, expiration)"
                " SELECT device_token, topic, payload, expiration FROM push_queue WHERE id = 1").lastrowid
            began = time.monotonic()
            while connection.execute("SELECT status FROM push_queue WHERE id = ?", (row,)).fetchone()[0] != "sent":
                if time.monotonic() - began > 30:
                    raise RuntimeError(f"the relay did not send row {row} in 30 s")
                time.sleep(0.001)
            times.append((time.monotonic() - began) * 1000)
            # The device's next notification finds the one before stored.
            time.sleep(0.005)
    return times


def h2load_alone(server, requests, seconds):
    """The same requests from one h2load, and its own processor time."""
    command = requests.command(server.port("api"), requests.tokens, "alone", ["-D", str(seconds), "--warm-up-time",
                                                                              str(WARM_UP)])
    command = command[len(ON_LOAD_CORES):]
    command[command.index("-c") + 1] = str(Sender.CONNECTIONS)
    command[command.index("-m") + 1] = str(Sender.STREAMS)
    return Sender(server, command, r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", seconds).outcome


def latencies(server, port, requests, rate=2000, seconds=3):
    """p50 and p99, in milliseconds, from request to answer at so many requests per second."""
    each = rate // CONNECTIONS
    logs = [requests.folder / f"log-{port}-{place}" for place in range(CONNECTIONS)]
    commands = requests.commands(port, ["-n", str(each * seconds), "--rps", str(each)])
    for command, log in zip(commands, logs):
        log.unlink(missing_ok=True)
        command.append(f"--log-file={log}")
    processes = _start(commands)
    with undisturbed([server.pid, *(process.pid for process in processes)]):
        _outputs(processes, seconds + 60)
    times = []
    for log in logs:
        for line in log.read_text().splitlines():
            _, status, microseconds = line.split("\t")
            if status != "200":
                server.fail(f"answered {status} at {rate} a second")
            times.append(int(microseconds) / 1000)
    return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}


@contextlib.contextmanager
def paced(server, requests, rate, seconds):
    """Requests at a steady rate, for so many seconds at most, while the `with` lasts."""
    each = rate // CONNECTIONS
    processes = _start(requests.commands(server.port("api"), ["-n", str(each * seconds), "--rps", str(each)]))
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def send_each(server, requests, port, tokens, name):
    """One notification for each token; ends when all are answered."""
    command = requests.command(port, tokens, name, ["-n", str(len(tokens))])
    (output,) = _outputs(_start([command]), 120)
    done = re.search(r"status codes: (\d+) 2xx", output)
    if not done or int(done[1]) != len(tokens):
        server.fail(f"did not take {len(tokens)} notifications: {output.strip()[-200:]}")


def percentile(values, share):
    if not values:
        return math.nan
    return sorted(values)[int((len(values) - 1) * share)]


class DeviceLoad:
    """Connected devices for as long as the `with` lasts; they obey the lines that DeviceLoad.swift names."""

    def __init__(self, port, ca, identities, devices, subscribe, first=0, publish="", publishers=0, topics=0, expect=0,
                 keep_session=False, options=()):
        self.command = _device_load(port, ca, identities, devices, subscribe, first, keep_session) + list(options)
        if publishers:
            self.command += ["--publish", publish, "--publishers", str(publishers), "--topics", str(topics)]
        self.command += ["--expect", str(expect)]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self._connected = None
        #: With the option `--tokens`.
        self.tokens = []

    @property
    def pid(self):
        return self.process.pid

    @property
    def connected(self):
        """Waits until all have reached their goal: their number, and the seconds that it took."""
        if self._connected is None:
            self._connected = self._answer("connect")
        return self._connected

    def __enter__(self):
        try:
            _ = self.connected
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._answer(line)

    def _answer(self, what):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
            self.tokens.append(line.split()[-1])
        self.process.kill()
        raise RuntimeError(f"the devices failed at '{what}': {self.process.stderr.read().strip()[-300:]}")

    def measure(self, server, seconds, load=(), counted="received"):
        """The number of messages that the devices receive within some seconds, or of `published` and acknowledged ones."""
        self.ask("begin")
        window = Window(server.pid, [self.pid, *load])
        time.sleep(seconds)
        window.end()
        outcome = self.ask("end")
        if outcome["lost"]:
            server.fail(f"lost {outcome['lost']:.0f} connections")
        return {**outcome, **window.outcome(outcome[counted] / outcome["seconds"])}


def _device_load(port, ca, identities, devices, subscribe, first=0, keep_session=False):
    command = [*ON_LOAD_CORES, str(RELEASE / "DeviceLoad"), "--port", str(port), "--ca", str(ca), "--identities",
               str(identities.pem), "--devices", str(devices), "--first", str(first), "--subscribe", subscribe]
    return command + (["--keep-session"] if keep_session else [])


def device_tokens(port, ca, identities, devices, topics, keep_session=False, first=0):
    """Connects so many devices once, from the number `first` on, registers them for the topics, and gives each topic's device tokens."""
    subscribe = ",".join(f"apps/{topic}/#" for topic in topics)
    command = [*_device_load(port, ca, identities, devices, subscribe, first, keep_session), "--tokens"]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300 + devices / 10)
    found = {topic: [] for topic in topics}
    for topic, token in re.findall(r"^apps/(\S+)/token ([0-9a-f]{64})$", run.stdout, re.M):
        found[topic].append(token)
    if run.returncode or any(len(tokens) != devices for tokens in found.values()):
        raise RuntimeError(f"not every device got its tokens: {run.stderr.strip()[-300:]}")
    return found


def handshakes(server, port, ca, identities, seconds, resumed, workers=8):
    """TLS handshakes with a client certificate for some seconds, by Python's ssl (OpenSSL)."""
    program = pathlib.Path(__file__).with_name("handshakes.py")
    processes = [
        subprocess.Popen([*ON_LOAD_CORES, sys.executable, str(program), str(port), str(ca),
                          str(identities.pem / f"{place}.pem"), str(seconds), "resumed" if resumed else "full"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for place in range(workers)]
    for process in processes:
        if process.stdout.readline() != "ready\n":
            server.fail(f"shook no hands: {process.stderr.read().strip()[-300:]}")
    window = Window(server.pid, [process.pid for process in processes])
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.count = process.stdout.readline()
    window.end()
    _outputs(processes, 30)
    times = [json.loads(process.count or "{}").get("milliseconds") for process in processes]
    if None in times:
        server.fail("shook no hands after a while")
    times = [each for found in times for each in found]
    return {**window.outcome(len(times) / window.seconds), "p50_ms": percentile(times, 0.5),
            "p99_ms": percentile(times, 0.99)}
