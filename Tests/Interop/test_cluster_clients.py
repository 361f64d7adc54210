"""The clients of others on a cluster behind a TCP load balancer: the same tests as on one machine, unchanged."""

import copy

import pytest

from cluster import BALANCED, Cluster, NamedNetwork
from parties import make_parties
from service import TOPIC, herald
from mqtt_device import APPS, MAIL
from test_api_apple import NAMES, TestAioapns
from test_api_clients import TestCurl, TestNghttp2, listening
from test_device_clients import *


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder)
    herald("init", "--data", cluster.data, "--as-apple")
    cluster.start()
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def apple(shared, tmp_path_factory):
    """The cluster under Apple's names, on whose port it is reached."""
    ports = {name: 443 if name == "api" else 0 for name in BALANCED}
    network = NamedNetwork(tmp_path_factory.mktemp("network"), NAMES, ports)
    service = copy.copy(shared)
    service.listeners = shared.balance(network.sockets)
    service.inside = network.inside
    yield service
    network.close()


@pytest.fixture(scope="module")
def parties(shared):
    return make_parties(shared)


@pytest.fixture(scope="module")
def provider_pem(shared):
    return shared.provider_certificate(TOPIC, f"{TOPIC}.voip", MAIL, *APPS)
