"""Development and production: one setting of the relay selects the credentials of its rows."""

import json

import pytest

from provider import listening_device
from relay import PAYLOAD, Relay, SQLiteQueue
from service import TOPIC


@pytest.fixture
def device():
    """Starts a device of a service, and ends them with the test."""
    devices = []

    def start(service):
        devices.append(listening_device(service))
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
