"""SIGHUP: what can change while the service runs changes, no connection is dropped, and a bad file changes nothing."""

import datetime
import queue
import signal
import socket
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
import paho.mqtt.client as mqtt
import pytest

from commands import PORTS
from parties import assert_accepted, new_id
from provider import Provider, away_device, connect_tls, listening_device, tls_context
from service import HERALD, PATIENCE, TOPIC, eventually, herald


class Configured:
    """A service with a configuration file of its own."""

    def __init__(self, fresh, tmp_path, text=""):
        self.path = tmp_path / "herald.yaml"
        self.path.write_text(text)
        self.service = fresh("--config", str(self.path)).start()

    def reload(self, text, word="configuration reloaded"):
        """Writes the file, sends SIGHUP, and waits for what the log says of it; returns the lines since."""
        before = len(self.service.lines)
        self.path.write_text(text)
        self.service.process.send_signal(signal.SIGHUP)

        def said():
            return any(word in line for line in self.service.lines[before:])

        eventually(said, what=f"the line `{word}`")
        return self.service.lines[before:]


@pytest.fixture
def configured(fresh, tmp_path):
    return lambda text="": Configured(fresh, tmp_path, text)


def test_reloadable_settings_apply_to_open_connections(configured):
    scene = configured()
    service = scene.service
    device = listening_device(service)
    with device, Provider(service, service.provider_certificate()) as provider:
        assert provider.push(device.token).unique_id is None
        assert provider.push(device.token, b"no json").reason == "BadPayload"
        lines = scene.reload(
            "unique-id: always\naccept-non-json: true\nlog-level: debug\nstorage-days: 1\ndrill: [streams --for 5m]\n"
        )
        (reloaded,) = [line for line in lines if "configuration reloaded" in line]
        for key in ("unique-id", "accept-non-json", "log-level", "storage-days", "drill"):
            assert key in reloaded
        assert not any("next start" in line for line in lines)
        # The same connection, and the device's own.
        assert provider.push(device.token).unique_id
        assert provider.push(device.token, b"no json").status == 200
        assert provider.goaways == []
        assert device.process.poll() is None
        assert herald("drill", "list", "--data", service.data).stdout.count("concurrent streams") == 1
        scene.reload("")
        assert provider.push(device.token).unique_id is None
        assert provider.push(device.token, b"no json").reason == "BadPayload"
        assert "no drill is active" in herald("drill", "list", "--data", service.data).stdout


def test_the_log_level_is_reloaded(configured):
    scene = configured()

    def check_port():
        """A connection that ends before its handshake, like a load balancer's, is logged at debug."""
        before = len(scene.service.lines)
        socket.create_connection(("127.0.0.1", scene.service.listeners["device"])).close()
        return before

    scene.reload("log-level: debug\n")
    before = check_port()
    eventually(lambda: any(" debug " in line for line in scene.service.lines[before:]), what="a line at debug")
    device = away_device(scene.service)
    scene.path.write_text("log-level: error\nunique-id: always\n")
    before = len(scene.service.lines)
    with Provider(scene.service, scene.service.provider_certificate()) as provider:
        assert provider.push(device.token).unique_id is None
        scene.service.process.send_signal(signal.SIGHUP)
        eventually(lambda: provider.push(device.token).unique_id, what="the reload")
    scene.reload("log-level: info\n")
    # The note of the first reload was below its new level.
    assert sum("configuration reloaded" in line for line in scene.service.lines[before:]) == 1


def test_a_shorter_storage_applies_to_later_notifications(configured):
    scene = configured()
    service = scene.service
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        scene.reload("storage-days: 1\n")
        assert_accepted(provider.push(device.token))
    with device.start():
        assert device.next().expiry <= 86_400


def test_a_shorter_journal_applies_at_once(fresh, tmp_path):
    (tmp_path / "herald.yaml").write_text("")
    service = fresh("--config", str(tmp_path / "herald.yaml"), "--clock", "adjustable").start()
    device = away_device(service)
    id = new_id()
    with Provider(service, service.provider_certificate()) as provider:
        assert_accepted(provider.push(device.token, id=id), id)
        herald("clock", "advance", "2d", "--data", service.data)
        assert service.journal(id)
        # The newest lines always stay.
        assert_accepted(provider.push(away_device(service).token))
        assert service.journal("--topic", TOPIC)
        (tmp_path / "herald.yaml").write_text("journal-days: 1\n")
        service.process.send_signal(signal.SIGHUP)
        eventually(lambda: any("configuration reloaded" in line for line in service.lines))
        herald("clock", "advance", "1s", "--data", service.data)
        assert not service.journal(id)


def test_a_shorter_keep_alive_applies_to_later_connections(configured):
    scene = configured()
    device = away_device(scene.service)

    def announced():
        answers = queue.Queue()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=device.id, protocol=mqtt.MQTTv5)
        client.tls_set_context(tls_context(scene.service.ca, device.path, alpn=()))
        client.on_connect = lambda _client, _data, _flags, _code, properties: answers.put(properties)
        client.connect("127.0.0.1", scene.service.listeners["device"], keepalive=1000)
        client.loop_start()
        properties = answers.get(timeout=PATIENCE)
        client.disconnect()
        client.loop_stop()
        return getattr(properties, "ServerKeepAlive", None)

    assert announced() is None
    scene.reload("keep-alive: 60s\n")
    assert announced() == 60


def test_settings_that_need_a_restart_are_named_in_one_line(configured):
    scene = configured()
    lines = scene.reload("api-port: 1\nhost: 127.0.0.2\nlog-format: json\nunique-id: always\n", "next start")
    (line,) = [line for line in lines if "takes effect at the next start" in line]
    for key in ("host", "log-format"):
        assert key in line
    assert "unique-id" not in line
    # Named again as long as it waits; the command line's own port is not the file's to change.
    assert "api-port" not in line
    (again,) = [line for line in scene.reload("host: 127.0.0.2\n", "next start") if "next start" in line]
    assert "host" in again and "log-format" not in again
    assert not any("next start" in line for line in scene.reload(""))


@pytest.mark.parametrize(
    "text",
    ["api-prot: 1\n", "storage-days: 0\n", "unique-id: always\nlog-level: loud\n", "drill: [explode --for 1m]\n", "{[",
     "unique-id: always\nunique-id: sandbox\n", f"unique-id: always\ndrill: [drop --for 1m --token {'00' * 32}]\n"],
)
def test_a_bad_file_changes_nothing_and_is_reported_in_one_line(configured, text):
    scene = configured()
    service = scene.service
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        lines = scene.reload(text, "configuration not reloaded")
        (line,) = [line for line in lines if " error " in line]
        assert "the present one stays in force" in line
        assert provider.push(device.token).unique_id is None
        scene.path.unlink()
        service.process.send_signal(signal.SIGHUP)
        eventually(lambda: sum("configuration not reloaded" in line for line in service.lines) == 2)
        scene.reload("unique-id: always\n")
        assert provider.push(device.token).unique_id


def test_payload_drills_are_judged_by_the_address_in_use(configured):
    scene = configured("host: 0.0.0.0\n")
    words = "configuration not reloaded"
    (line,) = [line for line in scene.reload("host: 127.0.0.1\npayload-drills: true\n", words) if words in line]
    assert "payload-drills-in-public" in line


def test_a_hangup_without_a_file_is_harmless(fresh):
    service = fresh().start()
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: any("configuration reloaded changed=nothing" in line for line in service.lines))
    assert service.process.poll() is None


def test_a_hangup_before_the_service_is_ready_does_not_end_it(fresh):
    """systemctl restart, and at once systemctl reload."""
    service = fresh()
    process = subprocess.Popen(
        [HERALD, "serve", "--data", service.data, *PORTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # From when it looks at its data folder, which it does after it has read its settings.
        eventually(service.data.exists, what="the data folder")
        process.send_signal(signal.SIGHUP)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "ready\n":
                break
        assert lines and lines[-1] == "ready\n"
        assert any("configuration reloaded" in line for line in iter(process.stderr.readline, ""))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_hundred_hangups_under_load_drop_nothing(configured):
    scene = configured()
    service = scene.service
    device = away_device(service)
    with Provider(service, service.provider_certificate()) as provider:
        for count in range(100):
            scene.path.write_text("unique-id: always\n" if count % 2 else "storage-days: 7\n")
            service.process.send_signal(signal.SIGHUP)
            answers = provider.push_many([device.token] * 10)
            assert [answer.status for answer in answers] == [200] * 10
        assert provider.goaways == []
    scene.reload("")


def test_a_replaced_server_certificate_drops_no_connection(configured):
    scene = configured()
    service = scene.service
    device = listening_device(service)
    with device, Provider(service, service.provider_certificate()) as provider:
        assert_accepted(provider.push(device.token))
        device.next()
        authority = own_certificate(service)
        service.process.send_signal(signal.SIGHUP)

        def is_shown():
            try:
                connect_tls(service.listeners["api"], ssl.create_default_context(cafile=str(authority))).close()
                return True
            except ssl.SSLError:
                return False

        eventually(is_shown, what="the new certificate")
        id = new_id()
        assert_accepted(provider.push(device.token, id=id), id)
        assert device.next().id == id
        assert provider.goaways == []


def own_certificate(service):
    """Puts an operator's own certificate in place of Herald's; returns the file of who signed it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (place,) = (path for path in (service.data / "trust").iterdir() if path.name.startswith("server") and path.suffix == ".pem")
    temporary = place.with_suffix(".new")
    temporary.write_bytes(
        pem
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    temporary.chmod(0o600)
    temporary.rename(place)
    path = service.data.parent / "own-ca.pem"
    path.write_bytes(pem)
    return path
