"""Development and production: one setting of the relay selects the credentials of its rows."""

import json

import pytest

from provider import Device
from relay import PAYLOAD, Relay, SQLiteQueue
from service import TOPIC


@pytest.fixture
def device():
    """Starts a device of a service, and ends them with the test."""
    devices = []

    def start(service, *options, **details):
        devices.append(Device(service, **details).start(*options))
        return devices[-1]

    yield start
    for each in devices:
        each.stop()


def test_one_setting_switches_every_row_to_the_other_environment(shared, fresh, device, tmp_path):
    sandbox = fresh("--environment", "sandbox").start()
    services = {"production": shared, "sandbox": sandbox}
    tokens = {environment: device(service).token for environment, service in services.items()}
    config = tmp_path / "relay.yaml"
    config.write_text(json.dumps({
        "apps": [
            {
                "topic": TOPIC, "certificate": str(service.provider_certificate()), "ca": str(service.ca),
                "service": f"localhost:{service.listeners['api']}", "environment": environment,
            }
            for environment, service in services.items()
        ]
    }))
    queue = SQLiteQueue(tmp_path / "queue.db")
    relay = Relay(queue.url, "--config", config)
    for environment, other in (("production", "sandbox"), ("sandbox", "production"), ("production", "sandbox")):
        relay.start("--environment", environment)
        try:
            ours, theirs = queue.done(
                *(queue.insert(device_token=tokens[name], payload=PAYLOAD) for name in (environment, other))
            )
        finally:
            assert relay.stop() == 0
        assert ours["status"] == "sent", ours
        assert (theirs["status"], theirs["reason"]) == ("refused", "BadDeviceToken")


#: Registers the apps of a mosquitto_sub in development.
SANDBOX = ("-D", "subscribe", "user-property", "environment", "sandbox")


@pytest.mark.parametrize("interface", ["http2", "binary"])
def test_one_service_has_both_environments(shared, device, queue, relay, interface):
    """The relay asks for the service, and for the list of dead tokens, by the name of its environment."""
    developer, user = device(shared, *SANDBOX), device(shared)
    port = shared.listeners["api" if interface == "http2" else "binary"]
    relay.options = list(map(str, (
        "--interface", interface, "--topic", TOPIC, "--certificate", shared.provider_certificate(environment="sandbox"),
        "--service", f"localhost:{port}", "--ca", shared.ca, "--environment", "sandbox",
        "--feedback", f"localhost:{shared.listeners['feedback']}", "--feedback-every", "1s",
    )))
    relay.start()
    ours, theirs = queue.done(*(queue.insert(device_token=each.token, payload=PAYLOAD) for each in (developer, user)))
    assert ours["status"] == "sent", ours
    assert (theirs["status"], theirs["reason"]) == ("refused", "BadDeviceToken")
    assert developer.next().json == json.loads(PAYLOAD)
    assert not [line for line in relay.lines if "could not read the feedback list" in line]


def test_apps_of_both_environments_share_a_service(shared, device, queue, relay, tmp_path):
    developer, user = device(shared, *SANDBOX), device(shared)
    config = tmp_path / "relay.yaml"
    app = {"topic": TOPIC, "ca": str(shared.ca), "service": f"localhost:{shared.listeners['api']}"}
    config.write_text(json.dumps({
        "apps": [
            {**app, "certificate": str(shared.provider_certificate(environment=name)), "environment": name}
            for name in ("production", "sandbox")
        ]
    }))
    relay.options = ["--config", str(config)]
    relay.start()
    rows = queue.done(
        queue.insert(device_token=user.token, payload=PAYLOAD),
        queue.insert(device_token=developer.token, payload=PAYLOAD, environment="development"),
        queue.insert(device_token=developer.token, payload=PAYLOAD),
    )
    assert [(row["status"], row["reason"]) for row in rows] == [("sent", None), ("sent", None), ("refused", "BadDeviceToken")]
