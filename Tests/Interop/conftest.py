import os

import pytest

from service import HERALD, Service

pytest_plugins = ("parties", "agents", "mqtt_fixtures", "relay_fixtures", "scripted_service", "screen_page", "soak")


def pytest_configure(config):
    if not HERALD.exists():
        raise pytest.UsageError(f"{HERALD} is not there; run `make build` first")


def pytest_xdist_setupnodes():
    # The processes in which tests run side by side look for the binary where this one was told that it is.
    os.environ["HERALD_BINARY"] = str(HERALD)


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """One running service for all tests that leave it as they found it."""
    service = Service(tmp_path_factory.mktemp("shared") / "data").start()
    yield service
    service.close()


@pytest.fixture
def fresh(tmp_path):
    """Makes services that a test has for itself: `fresh("--environment", "sandbox")`, not started yet."""
    services = []

    def make(*options, prefix=(), data=None):
        service = Service(data or tmp_path / f"data{len(services)}", *options, prefix=prefix)
        services.append(service)
        return service

    yield make
    for service in services:
        service.close()
