"""A queue of its own for each test of a relay, and a relay on it that is not started yet."""

import pytest

from relay import Relay, SQLiteQueue


@pytest.fixture
def queue(tmp_path):
    return SQLiteQueue(tmp_path / "queue.db")


@pytest.fixture
def relay(queue):
    relay = Relay(queue.url)
    yield relay
    relay.close()
