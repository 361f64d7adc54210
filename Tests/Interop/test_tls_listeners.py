"""Each port that speaks TLS, against Mozilla's intermediate profile, by sslyze."""

import dataclasses

import pytest
from sslyze import (
    CertificateInfoExtraArgument,
    ClientAuthenticationCredentials,
    ScanCommand,
    ScanCommandsExtraArguments,
    Scanner,
    ServerNetworkConfiguration,
    ServerNetworkLocation,
    ServerScanRequest,
)
from sslyze.mozilla_tls_profile.tls_config_checker import (
    SCAN_COMMANDS_NEEDED_BY_MOZILLA_CHECKER,
    MozillaTlsConfiguration,
    ServerNotCompliantWithTlsConfiguration,
    TlsConfigurationEnum,
    check_server_against_tls_configuration,
)

from service import PATIENCE, Service, herald

LISTENERS = ["api", "binary", "feedback", "device", "activation", "console"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The findings of sslyze at each port."""
    service = Service(tmp_path_factory.mktemp("listeners") / "data", "--console-tls", "on").start()
    try:
        # It asks for a second handshake only as somebody whose certificate is accepted, and for old versions only without one.
        device = service.data.parent / "device.pem"
        herald("device", "enroll", "--data", service.data, "--name", "x", "--out", device)
        files = {listener: device if listener in ("device", "activation") else service.provider_certificate() for listener in LISTENERS}
        everything = {listener: scan(service, listener, SCAN_COMMANDS_NEEDED_BY_MOZILLA_CHECKER - {RENEGOTIATION}) for listener in LISTENERS}
        again = {listener: scan(service, listener, {RENEGOTIATION}, files[listener]) for listener in LISTENERS}
        scanner = Scanner()
        scanner.queue_scans([*everything.values(), *again.values()])
        found = {result.uuid: result for result in scanner.get_results()}
    finally:
        service.close()
    for listener in LISTENERS:
        result, other = found[everything[listener].uuid], found[again[listener].uuid]
        attempts = dataclasses.replace(result.scan_result, session_renegotiation=other.scan_result.session_renegotiation)
        found[listener] = dataclasses.replace(result, scan_result=attempts)
    return found


RENEGOTIATION = ScanCommand.SESSION_RENEGOTIATION


def scan(service, listener, commands, pem=None):
    credential = ClientAuthenticationCredentials(pem, pem) if pem else None
    return ServerScanRequest(
        ServerNetworkLocation("localhost", service.listeners[listener], ip_address="127.0.0.1"),
        ServerNetworkConfiguration("localhost", tls_client_auth_credentials=credential, network_timeout=PATIENCE),
        scan_commands=commands,
        scan_commands_extra_arguments=ScanCommandsExtraArguments(
            certificate_info=None if pem else CertificateInfoExtraArgument(custom_ca_file=service.ca)
        ),
    )


@pytest.mark.parametrize("listener", LISTENERS)
def test_each_port_has_the_intermediate_profile(results, listener):
    """All but the lifetime of 366 days: public authorities have that limit. Herald's own renews what is good for 820."""
    profile = MozillaTlsConfiguration.get(TlsConfigurationEnum.MOZILLA_INTERMEDIATE)
    profile.maximum_certificate_lifespan = 825
    try:
        check_server_against_tls_configuration(results[listener], profile)
    except ServerNotCompliantWithTlsConfiguration as error:
        pytest.fail(str(error.issues), pytrace=False)
