"""The servers and the loads of the benchmarks: started on core 0, driven from core 1."""

import base64
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ROOT = pathlib.Path(__file__).resolve().parents[1]
RELEASE = ROOT / ".build" / "release"
SERVER, LOAD = ["taskset", "-c", "0"], ["taskset", "-c", "1"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended at once")
        time.sleep(0.05)
    raise RuntimeError(f"{process.args} did not listen")


def cpu_seconds(pid):
    """CPU time of a process and its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(cpu_seconds(child) for child in children)


def private_memory(pid):
    """Anonymous private memory in bytes: what connections cost, without shared libraries and file pages."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"Pss_Anon:\s+(\d+) kB", text)[1]) * 1024


class Identities:
    """A data folder with its authorities, and device identities that they signed: `<n>.pem`, identifiers bench-<n>."""

    def __init__(self, folder, count):
        self.folder = folder
        self.data = folder / "data"
        self.pem = folder / "pem"
        if not (self.data / "ca.pem").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run([str(RELEASE / "herald"), "init", "--data", str(self.data)], check=True, capture_output=True)
        self.pem.mkdir(exist_ok=True)
        self.authority = self._pem_of("device-authority")
        have = len(list(self.pem.iterdir()))
        for number in range(have, count):
            self._enroll(number)

    def _pem_of(self, name):
        for candidate in sorted((self.data / "trust").iterdir()):
            if name in candidate.name and b"BEGIN CERTIFICATE" in candidate.read_bytes():
                return candidate
        raise RuntimeError(f"no {name} in {self.data}/trust")

    def _authority_key(self):
        for candidate in sorted((self.data / "trust").iterdir()):
            if "device" in candidate.name and b"PRIVATE KEY" in candidate.read_bytes():
                return serialization.load_pem_private_key(_last_key(candidate.read_bytes()), None)
        raise RuntimeError("no key of the device authority")

    def _enroll(self, number):
        if not hasattr(self, "_signer"):
            self._issuer = x509.load_pem_x509_certificate(self.authority.read_bytes())
            self._signer = self._authority_key()
        name = f"bench-{number}"
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._issuer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=90))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
            .add_extension(x509.SubjectAlternativeName(
                [x509.UniformResourceIdentifier(f"urn:herald:device:{name}")]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                self._issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value), False)
            .sign(self._signer, hashes.SHA256())
        )
        (self.pem / f"{number}.pem").write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                serialization.NoEncryption()))


def _last_key(pem):
    return pem[pem.rindex(b"-----BEGIN"):]


class Server:
    """Something that runs on core 0 for as long as the `with` lasts."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid


class Herald(Server):
    """`herald serve`, or another program that opens the same doors, on a copy of the identities' data folder."""

    def __init__(self, data, identities, program="herald", arguments=()):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(identities.data, data)
        self.data, self.identities = data, identities
        self.ca = data / "ca.pem"
        subcommand = ["serve", *(part for door in ("api", "binary", "feedback", "device", "console") for part in (f"--{door}-port", "0"))] if program == "herald" else []
        self.process = subprocess.Popen(
            [*SERVER, str(RELEASE / program), *subcommand, "--data", str(data), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
        else:
            raise RuntimeError(f"{program} did not get ready")
        self.doors = json.loads((data / "run" / "doors.json").read_text())

    def port(self, door):
        return self.doors[door]

    def requests(self, topic, count):
        """Registers devices, and returns h2load's arguments for pushes to them."""
        tokens = self.tokens(topic, count)
        folder = self.data.parent
        uris = folder / "uris.txt"
        uris.write_text("".join(f"https://127.0.0.1:PORT/3/device/{token}\n" for token in tokens))
        body = folder / "body.json"
        body.write_text(json.dumps({"aps": {"alert": "x" * 270}}))
        keys = folder / f"{self.data.name}-keys"
        keys.mkdir(exist_ok=True)
        subprocess.run([str(RELEASE / "herald"), "provider", "key", "--data", str(self.data), "--team", "BENCH00001",
                        "--out", str(keys)], check=True, capture_output=True)
        (key,) = keys.glob("AuthKey_*.p8")
        jwt = provider_token(key, key.stem.removeprefix("AuthKey_"), "BENCH00001")
        headers = {"authorization": f"bearer {jwt}", "apns-topic": topic, "apns-push-type": "alert",
                   "apns-priority": "10", "apns-expiration": str(int(time.time()) + 86400)}
        return uris, body, headers

    def tokens(self, topic, count):
        """The device tokens of the first `count` identities, which it connects once."""
        output = subprocess.run(
            [*LOAD, str(RELEASE / "DeviceLoad"), "--port", str(self.port("device")), "--ca", str(self.ca),
             "--identities", str(self.identities.pem), "--devices", str(count), "--subscribe", f"apps/{topic}/#",
             "--tokens"],
            capture_output=True, text=True, check=True).stdout
        return re.findall(r"^[0-9a-f]{64}$", output, re.M)


class Nginx(Server):
    """nginx answering 200 to everything over HTTP/2 and TLS 1.3, one worker."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
            events {{ worker_connections 1024; }}
            http {{
                access_log off; http2_max_concurrent_streams 1000; keepalive_requests 100000000; client_max_body_size 8k;
                client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
                uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
                server {{
                    listen 127.0.0.1:{self.port} ssl http2; ssl_protocols TLSv1.3;
                    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
                    location / {{ return 200; }}
                }}
            }}""")
        self.process = subprocess.Popen([*SERVER, "nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(self.port, self.process)


class Mosquitto(Server):
    """mosquitto with mutual TLS on the same authorities."""

    def __init__(self, folder, identities):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.ca = identities.data / "ca.pem"
        server = identities.data / "trust" / "server.pem"
        text = server.read_bytes()
        key = folder / "key.pem"
        key.write_bytes(_last_key(text))
        chain = folder / "chain.pem"
        chain.write_bytes(text[:text.rindex(b"-----BEGIN")])
        authority = folder / "clients.pem"
        shutil.copy(identities.authority, authority)
        for path in (folder, key, chain, authority):
            path.chmod(0o755)
        (folder / "mosquitto.conf").write_text(f"""
listener {self.port} 127.0.0.1
cafile {authority}
certfile {chain}
keyfile {key}
require_certificate true
allow_anonymous true
persistence false
max_queued_messages 100000
max_inflight_messages 100
log_type error
user root
""")
        self.process = subprocess.Popen([*SERVER, "mosquitto", "-c", str(folder / "mosquitto.conf")],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(self.port, self.process)


def provider_token(path, key_id, team):
    key = serialization.load_pem_private_key(path.read_bytes(), None)

    def encode(value):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=")

    signed = encode({"alg": "ES256", "kid": key_id}) + b"." + encode({"iss": team, "iat": int(time.time())})
    r, s = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
    return (signed + b"." + encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()


def h2load(port, requests, count=100_000, connections=10, streams=100):
    """h2load's own figures: requests per second, done, failed."""
    uris, body, headers = requests
    local = uris.with_suffix(f".{port}")
    local.write_text(uris.read_text().replace("PORT", str(port)))
    command = [*LOAD, "h2load", "-n", str(count), "-c", str(connections), "-m", str(streams), "-t", "1",
               "-d", str(body), "-i", str(local)]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"finished in [\d.]+\w+, ([\d.]+) req/s", output)[1])
    done = int(re.search(r"status codes: (\d+) 2xx", output)[1])
    return {"rate": rate, "done": done, "failed": count - done}


def device_load(port, ca, identities, devices, subscribe, publish="", publishers=0, rate=0, seconds=5.0, hold=False):
    """Runs the load of devices; with `hold`, a context in which they stay connected."""
    command = [*LOAD, str(RELEASE / "DeviceLoad"), "--port", str(port), "--ca", str(ca), "--identities",
               str(identities.pem), "--devices", str(devices), "--subscribe", subscribe, "--seconds", str(seconds)]
    if publishers:
        command += ["--publish", publish, "--publishers", str(publishers), "--rate", str(rate)]
    if hold:
        return _held([*command, "--hold"])
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


@contextlib.contextmanager
def _held(command):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if "connected" not in process.stdout.readline():
            raise RuntimeError("the devices did not connect")
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=60)
