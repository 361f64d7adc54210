"""A small fleet lives for ten years: renewals, new authorities, new addresses, new token keys, restarts, absences."""

import datetime
import json
import shutil
import subprocess
import sys
import uuid

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from agents import Agent
from certificates import Authority
from machine_clock import MachineClock
from service import HERALD, PATIENCE, TOPIC, eventually, free_port, herald

DAY = 86_400
#: A device renews its certificate, which lasts for a year, at two thirds of that.
STEP = 250 * DAY
STEPS = 15
LONG = datetime.timedelta(days=5000)

#: A device of paho that follows no announcements.
PAHO = """
import ssl, sys, paho.mqtt.client as mqtt
port, pem, ca, name, topic = sys.argv[1:]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
client.tls_set(ca, pem, pem, tls_version=ssl.PROTOCOL_TLS_CLIENT)
client.on_connect = lambda client, *_: client.subscribe(f"apps/{topic}/#", qos=1)
client.on_message = lambda client, _, message: print(message.payload.decode(), flush=True)
client.connect("localhost", int(port))
client.loop_forever()
"""


class Activated(Agent):
    """An agent on the folder of an activation."""

    def start(self):
        command = [*self.prefix, HERALD, "agent", "run", "--folder", self.folder, "--app", TOPIC, "--allow", "alert", "--json"]
        self._start(command)
        return self


class Foreign:
    """A client of MQTT that was given a certificate for ten years and the service's authority."""

    def __init__(self, fleet, name, command):
        self.fleet = fleet
        self.pem = fleet.folder / f"{name}.pem"
        self.id = json.loads(fleet.command("device", "enroll", "--name", name, "--out", self.pem, "--json"))["id"]
        self.words = command

    def hear(self, send):
        """Connects, gives its token to `send`, and returns the payload that comes."""
        process = subprocess.Popen(
            [*self.fleet.clock.prefix, *self.words(self)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            send(process.stdout.readline().strip())
            return process.stdout.readline().strip()
        finally:
            process.kill()
            process.wait(timeout=PATIENCE)


class Fleet:
    def __init__(self, fresh, folder):
        self.folder = folder
        self.clock = MachineClock(folder)
        self.ports = [str(free_port()), str(free_port())]
        self.service = fresh(prefix=self.clock.prefix)
        self.authority = None
        #: The addresses that the service announces, as its setting has them.
        self.addresses = []

    def start(self):
        announced = [part for address in self.addresses for part in ("--device-addresses", address)]
        self.service.start("--device-port", self.ports[0], "--activation-port", self.ports[1], *announced)
        return self

    def restart(self):
        self.service.stop()
        self.start()

    def command(self, *arguments, check=True):
        result = herald(*arguments, "--data", self.service.data, prefix=self.clock.prefix, check=check)
        return result.stdout if check else result

    @property
    def port(self):
        return self.ports[0]

    def place(self):
        return f"localhost:{self.ports[0]}:{self.ports[1]}"

    def activate(self, name, *options, replace=False):
        code = json.loads(self.command("device", "invite", *options, "--json"))["code"]
        agent = Activated(self.service, self.folder / name, None)
        agent.prefix = self.clock.prefix
        herald(
            "agent", "activate", "--service", f"localhost:{self.ports[1]}", "--code", code, "--folder", agent.folder,
            *(["--replace"] if replace else []), prefix=self.clock.prefix,
        )
        return agent

    def send(self, token, check=True):
        alert = str(uuid.uuid4())
        self.command(
            "send", token, "--topic", TOPIC, "--key", self.key[0], "--key-id", self.key[1], "--team", self.key[2],
            "--service", f"localhost:{self.service.listeners['api']}", "--ca", self.service.ca, "--alert", alert,
        )
        return alert

    def reach(self, agent, earlier=None):
        """The agent is connected, and gets what is sent to it; `earlier` is a token that it had before."""
        token = agent.token(TOPIC)
        alert = self.send(earlier or token)
        while agent.next("notification")["payload"] != {"aps": {"alert": alert}}:
            pass
        return token

    def next_certificate(self):
        """A certificate of the operator's own, with the file of its authority."""
        authority = Authority.foreign(f"authority {uuid.uuid4()}", LONG)
        pem = authority.issue(
            self.folder / "next.pem", names=[x509.DNSName("localhost")], usages=(ExtendedKeyUsageOID.SERVER_AUTH,), ends=LONG
        )
        return authority.certificate.public_bytes(serialization.Encoding.PEM), pem

    def announcement(self):
        return json.loads(self.command("device", "announcement", "--json"))

    def unready(self):
        return {device["id"] for device in json.loads(self.command("device", "list", "--unready", "--json"))}


@pytest.fixture
def fleet(fresh, tmp_path):
    return Fleet(fresh, tmp_path)


# Some fifty starts of processes, each of which a busy machine may hold up.
@pytest.mark.timeout(1200)
def test_a_fleet_lives_for_ten_years(fleet):
    fleet.start()
    fleet.key = fleet.service.provider_key(TOPIC)
    agents = {name: fleet.activate(name) for name in ("one", "two", "away", "revoked")}
    ca = fleet.service.ca
    paho = Foreign(fleet, "paho", lambda device: [sys.executable, "-c", PAHO, fleet.port, device.pem, ca, device.id, TOPIC])
    mosquitto = Foreign(
        fleet, "mosquitto",
        lambda device: [
            "mosquitto_sub", "-h", "localhost", "-p", fleet.port, "--cafile", ca, "--cert", device.pem, "--key", device.pem,
            "-i", device.id, "-q", "1", "-t", f"apps/{TOPIC}/#",
        ],
    )
    tokens = {name: fleet.reach(agent.start()) for name, agent in agents.items()}
    eventually(lambda: fleet.announcement()["devices"] == {"ready": 4, "told": 0, "behind": 0, "silent": 2, "expired": 0})
    agents.pop("revoked").stop()
    fleet.command("device", "revoke", identifier(fleet, "revoked"))
    away = agents.pop("away")
    away.stop()

    for step in range(1, STEPS + 1):
        for agent in agents.values():
            agent.stop()
        fleet.clock.move(step * STEP)
        if step == 3:
            # A new authority, told first.
            next_ca, next_pem = fleet.next_certificate()
            with ca.open("ab") as file:
                file.write(next_ca)
            next_pem.chmod(0o600)
        if step == 4:
            # Everybody who can be told was told: those who follow nothing, and the one that is away, are named.
            checked = fleet.command("doctor", "--certificate", next_pem, check=False)
            assert checked.returncode == 1, checked.stdout
            assert "2 devices do not know every announced authority" in checked.stdout, checked.stdout
            assert fleet.unready() >= {paho.id, mosquitto.id}
            next_pem.replace(fleet.service.data / "trust" / "server.pem")
        if step == 9:
            # A new authority at once: agents find back by themselves, and the others are given the file.
            next_ca, next_pem = fleet.next_certificate()
            ca.write_bytes(next_ca)
            next_pem.chmod(0o600)
            next_pem.replace(fleet.service.data / "trust" / "server.pem")
        if step in (5, 8, 11):
            # The next address is announced before, and the service moves to it.
            fleet.addresses = [fleet.place()]
            following = [str(free_port()), str(free_port())]
            fleet.addresses.append(f"localhost:{following[0]}:{following[1]}")
            fleet.restart()
            for agent in agents.values():
                fleet.reach(agent.start())
            eventually(lambda: fleet.announcement()["devices"]["behind"] == 0)
            for agent in agents.values():
                agent.stop()
            fleet.service.stop()
            fleet.ports = following
            fleet.start()
        else:
            fleet.restart()
        fleet.command("clock", "accept", check=False)
        if step % 2 == 0:
            fleet.command("token", "rotate")
        for agent in agents.values():
            fleet.reach(agent.start())
        # Their certificates last for ten years, and nothing renews them.
        for device in (paho, mosquitto) if step < STEPS else ():
            sent = []
            said = device.hear(lambda token: sent.append(fleet.send(token)))
            assert json.loads(said) == {"aps": {"alert": sent[0]}}
        if step == 3:
            eventually(lambda: fleet.announcement()["devices"]["behind"] == 0)
        if step == 2:
            # Away for sixteen months: its certificate has expired, and it says so for good.
            assert fleet.announcement()["devices"]["expired"] == 1
            away.start()
            assert away.process.wait(timeout=PATIENCE) == 77
            away = fleet.activate("away", "--device", identifier(fleet, "away"), replace=True)
            # The token of before is good still, although its key is not the newest.
            fleet.reach(away.start(), tokens["away"])
            agents["away"] = away
        if step == 6:
            # Two with one certificate: each hears why it is put off, and the log names the device.
            clone = Activated(fleet.service, fleet.folder / "clone", None)
            shutil.copytree(agents["two"].folder, clone.folder, ignore=shutil.ignore_patterns("run"))
            clone.prefix = fleet.clock.prefix
            clone.start().next("connected")
            while "took over" not in agents["two"].next("disconnected")["reason"]:
                pass
            clone.stop()
            agents["two"].next("connected")
    eventually(lambda: fleet.announcement()["devices"] == {"ready": 3, "told": 0, "behind": 0, "silent": 0, "expired": 2})
    listed = json.loads(fleet.command("device", "list", "--json"))
    assert [device["id"] for device in listed if device.get("revoked")] == [identifier(fleet, "revoked")]
    for agent in agents.values():
        agent.stop()


def identifier(fleet, name):
    """The identifier in the certificate of a folder."""
    certificate = x509.load_pem_x509_certificate((fleet.folder / name / "identity.pem").read_bytes())
    return certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
