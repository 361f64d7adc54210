"""The clients of others on a cluster of three nodes behind a TCP load balancer: the same tests as on one machine, unchanged."""

import copy

import pytest

from cluster import BALANCED, Cluster, NamedNetwork
from parties import make_parties
from service import TOPIC
from mqtt_device import APPS, MAIL
import test_api_apple
from test_api_apple import TestAioapns
from test_api_clients import TestCurl, TestNghttp2, listening
from test_device_clients import *


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    names = [part for name in ("localhost", *test_api_apple.NAMES) for part in ("--hostname", name)]
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 3, *names).start()
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def apple(shared, tmp_path_factory):
    """The cluster under Apple's names, on whose port it is reached."""
    ports = {name: 443 if name == "api" else 0 for name in BALANCED}
    network = NamedNetwork(tmp_path_factory.mktemp("network"), test_api_apple.NAMES, ports)
    service = copy.copy(shared)
    service.listeners = shared.balance(network.sockets, network)
    service.inside = network.inside
    return service


@pytest.fixture(scope="module")
def parties(shared):
    return make_parties(shared)


@pytest.fixture(scope="module")
def provider_pem(shared):
    return shared.provider_certificate(TOPIC, f"{TOPIC}.voip", MAIL, *APPS)
