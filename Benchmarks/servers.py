"""The servers of the benchmarks, ours and the peers': each on the server's core for as long as its `with` lasts."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request

from identities import last_pem, provider_token
from machine import ON_SERVER_CORE, RELEASE, ROOT, WORK

TEAM = "BENCH00001"
PORTS = ("api", "binary", "feedback", "device", "activation", "console")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process on the server's core; what it says on standard error is in `<folder>.log`."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder.with_name(folder.name + ".log")

    def start(self, command, environment=None, **options):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*ON_SERVER_CORE, *map(str, command)], stderr=log, env={**os.environ, **(environment or {})},
                **{"stdout": subprocess.DEVNULL, **options})

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def fail(self, what):
        last = self.log.read_text(errors="replace").strip().splitlines()[-3:]
        raise RuntimeError(f"{self.process.args[3]} {what}: {' / '.join(last) or 'it says nothing'} ({self.log})")

    def await_port(self, port):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            if self.process.poll() is not None:
                self.fail("ended at once")
            time.sleep(0.05)
        self.fail("did not listen")


class OwnServer(Server):
    """A program of ours: it says `ready`, and its listeners are in `run/listeners.json` of its data folder.

    One event loop for the one core, as the peers have one worker each, unless a figure is about `loops`: taskset hides no
    cores from NIO.
    """

    loops = 1

    def start_own(self, command, environment=None):
        count = {"NIO_SINGLETON_GROUP_LOOP_COUNT": str(self.loops)}
        self.start(command, {**count, **(environment or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
        else:
            self.process.wait()
            self.fail("did not get ready")
        self.listeners = json.loads((self.folder / "run" / "listeners.json").read_text())

    def port(self, listener):
        return self.listeners[listener]


class Herald(OwnServer):
    """`herald serve` on a copy of a data folder.

    With `sync_delay` (milliseconds) every sync of its disk takes that much longer: the library SlowSync is preloaded, and
    the program is the same. `options` are more of its command line.
    """

    def __init__(self, folder, data, sync_delay=0, release=RELEASE, loops=1, options=()):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(data, folder)
        super().__init__(folder)
        self.sync_delay, self.release, self.loops, self.options = sync_delay, release, loops, options
        self.keeps_ports = False
        self.serve()

    def serve(self):
        self.start_own(
            [
                self.release / "herald", "serve", "--data", self.folder,
                *(part for name in PORTS for part in (f"--{name}-port", self.listeners[name] if self.keeps_ports else 0)),
                *self.options,
            ],
            slow_sync(self.sync_delay))
        self.ca = self.folder / "ca.pem"
        # The loader only warns of a library that it cannot preload.
        if self.sync_delay and "libSlowSync" not in pathlib.Path(f"/proc/{self.pid}/maps").read_text():
            self.fail("has a fast disk, and was to have a slow one")

    def restart(self):
        """Ends it and starts it anew, on other ports."""
        self.stop()
        self.serve()

    def provider_token(self):
        keys = self.folder.with_name(self.folder.name + "-keys")
        # That of a service which had the folder before.
        shutil.rmtree(keys, ignore_errors=True)
        keys.mkdir()
        subprocess.run([str(self.release / "herald"), "provider", "key", "--data", str(self.folder), "--team", TEAM, "--out",
                        str(keys)], check=True, capture_output=True)
        (key,) = keys.glob("AuthKey_*.p8")
        return provider_token(key, key.stem.removeprefix("AuthKey_"), TEAM)

    def counters(self):
        """The metrics by name and labels."""
        url = f"http://127.0.0.1:{self.listeners['console']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return {name: float(value) for name, value in re.findall(r"^(\w\S*) ([\d.e+]+)$", answer.read().decode(), re.M)}


def slow_sync(milliseconds):
    if not milliseconds:
        return {}
    return {"LD_PRELOAD": str(RELEASE / "libSlowSync.so"), "SLOW_SYNC_MICROSECONDS": str(milliseconds * 1000)}


class Courier(OwnServer):
    """CourierBench: courier, post office and (unless `alone`) store and journal, fed from inside."""

    def __init__(self, folder, identities, alone=False, release=RELEASE, loops=1):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(identities.data, folder)
        super().__init__(folder)
        self.ca = folder / "ca.pem"
        self.loops = loops
        self.start_own([release / "CourierBench", "--data", folder, *(["--alone"] if alone else [])])

    def feed(self, devices, rate=0):
        if self._ask(f"feed {devices} {rate}")["fed"] != devices:
            self.fail(f"does not know {devices} devices")

    def rest(self):
        self._ask("rest")

    def _ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.fail(f"did not answer to '{line}'")
        return json.loads(answer)


class Accepting(OwnServer):
    """GatewayBench: the provider API with nothing behind it."""

    def __init__(self, folder, devices, release=RELEASE):
        shutil.rmtree(folder, ignore_errors=True)
        super().__init__(folder)
        folder.rmdir()
        self.start_own([release / "GatewayBench", "--data", folder, "--devices", devices])
        self.tokens = (folder / "tokens").read_text().split()
        self.bearer = (folder / "bearer").read_text()


def _certificate(folder):
    key, certificate = folder / "key.pem", folder / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    return key, certificate


class Nginx(Server):
    """nginx answering 200 to everything over HTTP/2 and TLS 1.3, one worker."""

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()
        key, certificate = _certificate(folder)
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
            events {{ worker_connections 1024; }}
            http {{
                access_log off; http2_max_concurrent_streams 1000; keepalive_requests 100000000; client_max_body_size 8k;
                client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
                uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                server {{
                    listen 127.0.0.1:{self.port} ssl http2; ssl_protocols TLSv1.3;
                    ssl_certificate {certificate}; ssl_certificate_key {key};
                    location / {{ return 200; }}
                }}
            }}""")
        self.start(["nginx", "-c", folder / "nginx.conf", "-p", folder])
        self.await_port(self.port)


class Nghttpd(Server):
    """nghttpd with an empty file for each device token, one thread."""

    def __init__(self, folder, tokens):
        super().__init__(folder)
        self.port = free_port()
        key, certificate = _certificate(folder)
        devices = folder / "www" / "3" / "device"
        devices.mkdir(parents=True)
        for token in tokens:
            (devices / token).touch()
        self.start(["nghttpd", "-n", 1, "-a", "127.0.0.1", "-d", folder / "www", self.port, key, certificate])
        self.await_port(self.port)


class Mosquitto(Server):
    """mosquitto with mutual TLS on the same authorities; with `persistence` what waits survives a restart."""

    def __init__(self, folder, identities, persistence=False):
        super().__init__(folder)
        self.port = free_port()
        self.ca = identities.data / "ca.pem"
        text = (identities.data / "trust" / "server.pem").read_bytes()
        key, chain, authority = folder / "key.pem", folder / "chain.pem", folder / "clients.pem"
        key.write_bytes(last_pem(text))
        chain.write_bytes(text[:text.rindex(b"-----BEGIN")])
        shutil.copy(identities.authority, authority)
        (folder / "mosquitto.conf").write_text(f"""
listener {self.port} 127.0.0.1
cafile {authority}
certfile {chain}
keyfile {key}
require_certificate true
allow_anonymous true
persistence {str(persistence).lower()}
persistence_location {folder}/
max_queued_messages 100000
max_inflight_messages 100
log_type error
user {"root" if os.getuid() == 0 else ""}
""".replace("user \n", ""))
        self.restart(first=True)

    def restart(self, first=False):
        if not first:
            self.stop()
        self.start(["mosquitto", "-c", self.folder / "mosquitto.conf"])
        self.await_port(self.port)


class Limit(Server):
    """`tls_limit`, what TLS and the kernel alone take, built from the release build's own BoringSSL; on the same authorities."""

    def __init__(self, folder, identities, messages=0):
        super().__init__(folder)
        program, self.port, self.ca = WORK / "tls_limit", free_port(), identities.data / "ca.pem"
        library = ROOT / ".build" / "checkouts" / "swift-nio-ssl" / "Sources" / "CNIOBoringSSL" / "include"
        objects = [str(path) for path in (RELEASE / "CNIOBoringSSL.build").rglob("*.o")]
        subprocess.run(["cc", "-O2", "-o", str(program), str(ROOT / "Benchmarks" / "tls_limit.c"), f"-I{library}", *objects,
                        "-ljemalloc", "-lstdc++", "-lpthread"], check=True)
        self.command = [program, self.port, identities.data / "trust" / "server.pem", identities.authority, messages]
        self.restart(first=True)

    def restart(self, first=False):
        if not first:
            self.stop()
        self.start(self.command)
        self.await_port(self.port)
