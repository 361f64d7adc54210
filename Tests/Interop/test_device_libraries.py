"""The device contract with the MQTT libraries of Debian: MQTT.js and the C client of Paho, in 3.1.1 and 5."""

import json
import os
import re
import shutil
import subprocess

import pytest

from service import PATIENCE, TOPIC

PAYLOAD = ' {"aps":{"alert":"Grüße 😀 \\u00fc"},"n":1.50} '.encode()

#: Connects with the options of its argument, subscribes, and prints each message as a line of JSON.
MQTT_JS = """
const mqtt = require("mqtt"), fs = require("fs");
const { topic, files, ...options } = JSON.parse(process.argv[1]);
for (const [name, path] of Object.entries(files)) options[name] = fs.readFileSync(path);
const client = mqtt.connect(options);
client.on("connect", () => client.subscribe(topic, { qos: 1 }, error => { if (error) throw error; }));
client.on("message", (topic, payload, packet) =>
    console.log(JSON.stringify([topic, payload.toString("hex"), packet.qos])));
client.on("error", error => { console.error(error.message); process.exit(1); });
client.on("close", () => process.exit(2));
"""


class Listener:
    """A running client of another library, which prints what it receives."""

    def __init__(self, command, read):
        self.read = read
        # Where Debian's packages for Node.js are, whichever Node.js this is.
        environment = {**os.environ, "NODE_PATH": "/usr/share/nodejs"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    def message(self):
        """The next message: topic, payload."""
        for line in self.process.stdout:
            if message := self.read(line):
                return message
        raise AssertionError(self.process.stderr.read().decode())

    def end(self):
        """Ends it without a DISCONNECT, as a network does."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


def mqtt_js(device, version, identifier):
    options = {
        "host": "localhost", "port": device.service.listeners["device"], "protocol": "mqtts", "reconnectPeriod": 0,
        "protocolVersion": version, "clientId": identifier, "clean": False, "topic": f"apps/{TOPIC}/#",
        "files": {"ca": str(device.service.ca), "cert": str(device.path), "key": str(device.path)},
    }
    node = shutil.which("node")
    assert node, "`make test` installs node-mqtt"

    def read(line):
        topic, payload, qos = json.loads(line)
        assert qos == 1
        return topic, bytes.fromhex(payload)

    return Listener([node, "-e", MQTT_JS, json.dumps(options)], read)


def paho_c(device, version, identifier):
    command = [
        "paho_c_sub", "-t", f"apps/{TOPIC}/#", "--connection", f"ssl://localhost:{device.service.listeners['device']}",
        "-V", {5: "5", 4: "311"}[version], "-i", identifier, "--qos", "1", "--verbose",
        "--cafile", str(device.service.ca), "--cert", str(device.path), "--key", str(device.path),
    ]

    def read(line):
        # The number of bytes, the topic and the payload; it begins with words about itself.
        found = re.fullmatch(rb"\d+ (\S+)\t(.*)\n", line)
        return found and (found[1].decode(), found[2])

    return Listener(["stdbuf", "-oL", *command], read)


@pytest.fixture(params=[mqtt_js, paho_c], ids=["MQTT.js", "Paho C"])
def listen(request, device, version):
    """Starts a client of the device."""
    made = []

    def start(identifier=device.id):
        made.append(request.param(device, version, identifier))
        return made[-1]

    yield start
    for listener in made:
        listener.end()


def test_it_registers_and_receives(listen, provider):
    listener = listen()
    topic, token = listener.message()
    assert topic == f"apps/{TOPIC}/token"
    assert provider.push(token.decode(), PAYLOAD).status == 200
    assert listener.message() == (f"apps/{TOPIC}", PAYLOAD)


def test_it_gets_what_waited_after_its_connection_was_lost(listen, provider):
    listener = listen()
    _, token = listener.message()
    listener.end()
    assert provider.push(token.decode(), PAYLOAD).status == 200
    listener = listen()
    found = [listener.message(), listener.message()]
    assert (f"apps/{TOPIC}", PAYLOAD) in found
    assert (f"apps/{TOPIC}/token", token) in found


def test_it_is_refused_with_the_identifier_of_another_device(listen):
    listener = listen("somebody-else")
    words = listener.process.stderr.readline().decode()
    # MQTT.js has words for the reason, Paho's example its number: 133 in 5, 2 in 3.1.1.
    assert re.search(r"Client Identifier not valid|Identifier rejected|Connect failed, rc Unknown error code (133|2)\b", words), words
