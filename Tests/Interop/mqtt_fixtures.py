"""The devices and the provider of the tests that speak MQTT to the shared service."""

import pytest

from mqtt_device import APPS, MAIL, Identity
from provider import Provider
from service import TOPIC


@pytest.fixture
def enroll():
    """Makes devices of any service; their connections end with the test."""
    devices = []

    def make(service, name="device"):
        devices.append(Identity(service, name))
        return devices[-1]

    yield make
    for device in devices:
        device.close()


@pytest.fixture
def device(shared, enroll):
    """A device that the service has never seen."""
    return enroll(shared)


@pytest.fixture
def other(shared, enroll):
    """A second device."""
    return enroll(shared, "other")


@pytest.fixture(scope="module")
def _steady(shared):
    return Identity(shared, "steady")


@pytest.fixture
def steady(_steady):
    """A device for tests that register nothing and end in the loss of the connection: enrolled once for all of them."""
    yield _steady
    _steady.close()


@pytest.fixture(scope="session")
def provider_pem(shared):
    return shared.provider_certificate(TOPIC, f"{TOPIC}.voip", MAIL, *APPS)


@pytest.fixture(scope="module")
def provider(shared, provider_pem):
    """A provider for all topics of these tests."""
    with Provider(shared, provider_pem) as connection:
        yield connection


@pytest.fixture(params=[5, 4], ids=["5.0", "3.1.1"])
def version(request):
    """The protocol level; what is the same in both versions is tested in both."""
    return request.param
