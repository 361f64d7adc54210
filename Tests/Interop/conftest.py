import itertools
import os

import pytest

from service import HERALD, Service

pytest_plugins = ("parties", "agents", "mqtt_fixtures", "relay_fixtures", "scripted_service", "screen_page", "console_page", "soak")


def pytest_configure(config):
    if not HERALD.exists():
        raise pytest.UsageError(f"{HERALD} is not there; run `make build` first")


def pytest_xdist_setupnodes():
    # The processes in which tests run side by side look for the binary where this one was told that it is.
    os.environ["HERALD_BINARY"] = str(HERALD)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    # Each process begins with a share of its own. Slow tests lie spread over the modules of the shares: so none is the last one.
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = [item for item in items if item.get_closest_marker("slow")]
    modules = [list(tests) for _, tests in itertools.groupby((item for item in items if item not in slow), lambda item: item.path)]
    ordered = []
    for number in range(processes):
        waiting = slow[number::processes]
        while modules and (len(ordered) + len(waiting) < len(items) * (number + 1) / processes or number == processes - 1):
            ordered += waiting[:1] + modules.pop(0)
            waiting = waiting[1:]
        ordered += waiting
    items[:] = ordered


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
