"""The fixtures of pytest: `herald`, `own_herald`, `as_apple`, `device` and `no_apple`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import apple
from .device import Device
from .service import Herald


@pytest.fixture(scope="session", autouse=True)
def no_apple() -> Iterator[None]:
    """Refuses Apple's names in tests, here and in processes that they start, except within `as_apple`.

    It holds for every test. A fixture of your own with this name switches it off.
    """
    with apple.names({}):
        yield


@pytest.fixture(scope="session")
def herald() -> Iterator[Herald]:
    """The service that the tests of this process share. With pytest-xdist each worker has its own."""
    with Herald() as service:
        yield service


@pytest.fixture
def own_herald() -> Iterator[Herald]:
    """A service that a test has for itself, whose clock it can move."""
    with Herald("--clock", "adjustable") as service:
        yield service


@pytest.fixture
def as_apple(herald: Herald) -> Iterator[Herald]:
    """The shared service under Apple's names: who connects to `api.push.apple.com` reaches it, here or in a process that starts."""
    with herald.as_apple():
        yield herald


@pytest.fixture
def device(herald: Herald) -> Iterator[Device]:
    """A new device of the shared service."""
    with herald.device() as found:
        yield found
