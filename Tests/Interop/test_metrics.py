"""The metrics of a service and a relay under traffic, and what stands on them: the manual, alert rules and the dashboard."""

import contextlib
import json
import re
import ssl
import subprocess
import urllib.request

import pytest

from provider import connect_tls, listening_device, tls_context
from refusals import refused
from relay import Relay, SQLiteQueue, sending
from service import PATIENCE, ROOT, Service, eventually

RULES = ROOT / "Packaging" / "prometheus" / "herald.rules.yml"
DASHBOARD = json.loads((ROOT / "Packaging" / "grafana" / "herald.json").read_text())
MANUAL = (ROOT / "docs" / "metrics.md").read_text()
#: The manual's table: name → (kind, labels, description).
ROWS = {
    name: (kind, set(re.findall(r"`(\w+)`", labels)), words)
    for name, kind, labels, words in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$", MANUAL, re.M)
}
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
#: Added by Prometheus to every series, or by a histogram.
COMMON = {"job", "instance", "le"}


def family(series):
    """The metric to which a series belongs: a histogram has three kinds of series."""
    base = re.sub(r"_(bucket|sum|count)$", "", series)
    return base if ROWS.get(base, ("",))[0] == "histogram" else series


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The metrics of a service and of a relay after notifications, refusals and refused connections."""
    folder = tmp_path_factory.mktemp("metrics")
    service = Service(folder / "data").start()
    queue = SQLiteQueue(folder / "queue.db")
    relay = Relay(queue.url, *sending(service)).start()
    try:
        with listening_device(service) as device:
            ids = [queue.insert(device_token=device.token), queue.insert(device_token="ab" * 32)]
            sent, refusal = queue.done(*ids)
            assert (sent["status"], refusal["status"]) == ("sent", "refused")
            assert device.next()
            with contextlib.suppress(ssl.SSLError, OSError):
                connect_tls(service.listeners["device"], tls_context(service.ca, alpn=())).recv(1)
            eventually(lambda: refused(service, "devices", "no_certificate"), what="the refused connection")

            def read():
                """The metrics, once every time has been measured: an acknowledgement is so after the device has printed."""
                address = f"http://127.0.0.1:{service.listeners['console']}/metrics"
                with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                    texts = {"herald": answer.read().decode(), "herald-relay": relay.get("/metrics")[1]}
                values = {series: float(value) for series, pairs, value in SAMPLE.findall("".join(texts.values())) if not pairs}
                times = [name for name, (kind, _, _) in ROWS.items() if kind == "histogram"]
                return all(values.get(f"{name}_count", 0) > 0 for name in times) and texts

            yield eventually(read, what="a measurement of every time")
    finally:
        relay.close()
        service.close()


def test_the_manual_has_every_metric_and_every_metric_is_seen(texts):
    seen = set()
    for text in texts.values():
        helps = dict(re.findall(r"^# HELP (\w+) (.*)\.$", text, re.M))
        kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
        labels = {name: set() for name in kinds}
        for series, pairs, _ in SAMPLE.findall(text):
            labels[family(series)] |= {name for name, _ in LABEL.findall(pairs)} - {"le"}
        assert {name: (kinds[name], labels[name], helps.get(name)) for name in kinds} == {name: ROWS.get(name) for name in kinds}
        seen |= set(kinds)
    # test_cluster_node.py sees those of a cluster.
    assert seen == {name for name in ROWS if not name.startswith("herald_cluster_")}


def test_the_documents_explain_every_value_of_a_label(texts):
    words = MANUAL + "".join((ROOT / "docs" / f"{page}.md").read_text() for page in ("providers", "drills", "compatibility"))
    values = {value for text in texts.values() for _, pairs, _ in SAMPLE.findall(text) for name, value in LABEL.findall(pairs)
              if name in ("reason", "result", "outcome", "operation", "kind", "status", "peers")}
    assert len(values) > 60
    assert [value for value in sorted(values) if not re.search(rf"\b{re.escape(value)}\b", words)] == []


def test_promtool_finds_nothing_to_say_about_the_metrics(texts):
    for text in texts.values():
        result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_latencies_were_measured(texts):
    values = {series: float(value) for series, pairs, value in SAMPLE.findall("".join(texts.values())) if not pairs}
    for name, (kind, _, _) in ROWS.items():
        if kind == "histogram":
            assert values[f"{name}_count"] > 0 and 0 <= values[f"{name}_sum"] < 10 * PATIENCE, name


# Alert rules and dashboard.


def alerts():
    """The alerts: name → (expression, everything in the rule)."""
    parts = re.split(r"^ +- alert: (\w+)\n", RULES.read_text(), flags=re.M)[1:]
    return {name: (re.search(r"expr: \|?(.*?)(?=^ +(?:for|labels):)", text, re.M | re.S)[1], text) for name, text in zip(parts[::2], parts[1::2])}


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions():
    yield from ((name, expression) for name, (expression, _) in alerts().items())
    yield from ((panel["title"], target["expr"]) for panel in panels() for target in panel["targets"])
    yield from ((entry["name"], entry["expr"]) for entry in DASHBOARD["annotations"]["list"])


def faults(expression, texts):
    """The names in an expression that no service and no relay has."""
    names = re.findall(r"\b(?:herald|process)_\w+", re.sub(r'"[^"]*"', '""', expression))
    for name in names:
        if family(name) not in ROWS:
            yield f"there is no metric {name}"
    allowed = COMMON.union(*(ROWS[family(name)][1] for name in names if family(name) in ROWS))
    groups = re.findall(r"\b(?:by|without|ignoring|on|group_left|group_right) ?\(([^)]*)\)", expression)
    for label in {label.strip() for group in groups for label in group.split(",")} - {""} - allowed:
        yield f"no metric has the label {label}"
    words = "".join(texts.values()) + MANUAL
    for label, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', expression):
        if label not in allowed:
            yield f"no metric has the label {label}"
        for one in value.split("|"):
            if label not in COMMON and not one.endswith("..") and not re.search(rf"\b{re.escape(one)}\b", words):
                yield f"{label} is never {one}"


def test_every_expression_names_metrics_labels_and_values_that_exist(texts):
    checked = list(expressions())
    assert len(checked) > 90
    assert [(where, fault) for where, expression in checked for fault in faults(expression, texts)] == []


def test_a_wrong_expression_is_found(texts):
    wrong = ["herald_nothing > 0", 'herald_ready{color="red"}', 'herald_deliveries_total{result="eaten"}', "sum by (color) (herald_ready)"]
    assert [expression for expression in wrong if not list(faults(expression, texts))] == []


def test_promtool_reads_every_expression_of_the_dashboard(tmp_path):
    rules = [{"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")} for number, (_, expression) in enumerate(expressions())]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", "--lint=none", file)


def test_the_panels_are_whole_and_do_not_overlap():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert max(x for x, _ in cells) < 24 and not cells & taken, panel["title"]
        taken |= cells
    assert [panel["title"] for panel in panels() if not panel["description"].endswith(".") or not panel["targets"]] == []


def test_every_alert_has_a_section_and_every_section_an_alert():
    sections = re.findall(r"^### (\w+)$", (ROOT / "docs" / "operations" / "alerts.md").read_text(), re.M)
    assert sections == list(alerts())
    for name, (_, text) in alerts().items():
        assert f"runbook: docs/operations/alerts.md#{name.lower()}\n" in text
        assert re.search(r"severity: (critical|warning)\b", text) and "summary: " in text
    pages = (ROOT / "docs" / "operations" / "alerts.md").read_text()
    for name, body in zip(sections, re.split(r"^### \w+$", pages, flags=re.M)[1:]):
        assert ("*Critical.*" in body) == ("severity: critical" in alerts()[name][1]), name


REQUESTS = 'herald_provider_requests_total{instance="a",status="200"}'


def slow(metric, share):
    """Series of a histogram in which this share of the values lies between one second and ten."""
    fast = round(600 * (1 - share))
    bounds = {"0.1": fast, "1": fast, "10": 600, "+Inf": 600}
    return {f'{metric}_bucket{{instance="a",le="{bound}"}}': f"0+{count}x120" for bound, count in bounds.items()}


#: For each alert the series with which it fires after 100 minutes, and those with which it does not.
CASES = {
    "HeraldDown": ({'up{job="herald"}': "0x120"}, {'up{job="herald"}': "1x120"}),
    "HeraldNotReady": ({"herald_ready": "0x120"}, {"herald_ready": "1x120"}),
    "HeraldWarns": ({"herald_health_warnings": "1x120"}, {"herald_health_warnings": "0x120"}),
    "HeraldRestarts": (
        {'process_start_time_seconds{job="herald"}': "0+300x120"}, {'process_start_time_seconds{job="herald"}': "1x95 2x20"},
    ),
    "HeraldServerErrors": (
        {REQUESTS: "0+100x120", 'herald_provider_requests_total{instance="a",status="503",reason="ServiceUnavailable"}': "0+2x120"},
        {REQUESTS: "0+1000x120", 'herald_provider_requests_total{instance="a",status="503",reason="ServiceUnavailable"}': "0+2x120"},
    ),
    "HeraldNotificationsNotStored": (
        {"herald_notifications_not_stored_total": "0x97 5x20"}, {"herald_notifications_not_stored_total": "5x120"},
    ),
    "HeraldProvidersRefused": (
        {REQUESTS: "0+100x120", 'herald_provider_requests_total{instance="a",status="403",reason="ExpiredProviderToken"}': "0+50x120"},
        {REQUESTS: "0+100x120", 'herald_provider_requests_total{instance="a",status="403",reason="ExpiredProviderToken"}': "0+5x120"},
    ),
    "HeraldTokensRefused": (
        {REQUESTS: "0+100x120", 'herald_provider_requests_total{instance="a",status="410",reason="Unregistered"}': "0+50x120"},
        {REQUESTS: "0+100x120", 'herald_provider_requests_total{instance="a",status="410",reason="Unregistered"}': "0+5x120"},
    ),
    "HeraldRequestsSlow": (
        slow("herald_provider_request_duration_seconds", 0.05), slow("herald_provider_request_duration_seconds", 0.001),
    ),
    "HeraldCommitsSlow": (slow("herald_store_commit_duration_seconds", 0.05), slow("herald_store_commit_duration_seconds", 0.001)),
    "HeraldDiskLow": ({"herald_store_free_bytes": "500000000x120"}, {"herald_store_free_bytes": "50000000000x120"}),
    "HeraldMemoryHigh": (
        {"herald_notification_memory_bytes": "150x120", "herald_notification_memory_limit_bytes": "256x120"},
        {"herald_notification_memory_bytes": "100x120", "herald_notification_memory_limit_bytes": "256x120"},
    ),
    "HeraldFilesShort": (
        {'process_open_fds{job="herald"}': "900x120", 'process_max_fds{job="herald"}': "1024x120"},
        {'process_open_fds{job="herald"}': "100x120", 'process_max_fds{job="herald"}': "1024x120"},
    ),
    "HeraldListenerFull": (
        {'herald_connections_open{listener="devices"}': "950x120", 'herald_connections_limit{listener="devices"}': "1000x120"},
        {'herald_connections_open{listener="devices"}': "500x120", 'herald_connections_limit{listener="devices"}': "1000x120"},
    ),
    "HeraldConnectionsRefused": (
        {'herald_connections_refused_total{instance="a",listener="devices",reason="expired"}': "0+120x120"},
        {'herald_connections_refused_total{instance="a",listener="devices",reason="ended"}': "0+120x120"},
    ),
    "HeraldDevicesLost": ({"herald_devices_connected": "1000x94 500x20"}, {"herald_devices_connected": "1000x94 900x20"}),
    "HeraldFleetShrinks": (
        {'herald_devices_connected{job="h",instance="a"}': "100x60 20x60", 'herald_devices_connected{job="h",instance="b"}': "100x120"},
        # A node is gone, and its devices are at the other one.
        {'herald_devices_connected{job="h",instance="a"}': "100x60 _x60", 'herald_devices_connected{job="h",instance="b"}': "100x60 200x60"},
    ),
    "HeraldDevicesUnseen": (
        {'herald_devices_unseen{job="h",days="7"}': "3x120"},
        # The other node has seen them; and a day is not a week.
        {
            'herald_devices_unseen{job="h",days="7",instance="a"}': "3x120", 'herald_devices_unseen{job="h",days="7",instance="b"}': "0x120",
            'herald_devices_unseen{job="h",days="1"}': "3x120",
        },
    ),
    "HeraldDeviceCertificatesExpire": (
        {'herald_device_certificates{job="h",state="ending"}': "1x120"}, {'herald_device_certificates{job="h",state="ended"}': "1x120"},
    ),
    "HeraldTakeovers": (
        {"herald_device_takeovers_total": "0+60x120", "herald_device_connections_total": "0+100x120"},
        {"herald_device_takeovers_total": "0+60x120", "herald_device_connections_total": "0+10000x120"},
    ),
    "HeraldActivationsFail": (
        {'herald_activations_total{result="failed"}': "0x95 1x20"}, {'herald_activations_total{result="refused"}': "0x95 1x20"},
    ),
    # The clock of these tests begins in 1970.
    "HeraldCertificateExpires": (
        {'herald_certificate_expiry_timestamp_seconds{certificate="server"}': "864000x120"},
        {'herald_certificate_expiry_timestamp_seconds{certificate="server"}': "8640000x120"},
    ),
    "HeraldRevocationListNotCurrent": ({"herald_revocation_list_current": "0x120"}, {"herald_revocation_list_current": "1x120"}),
    "HeraldTrustNotReloaded": ({"herald_trust_reload_failed": "1x120"}, {"herald_trust_reload_failed": "0x120"}),
    "HeraldClockJumped": ({"herald_clock_jump_seconds": "-7200x120"}, {"herald_clock_jump_seconds": "0x120"}),
    "HeraldDrillRuns": ({"herald_drills_active": "1x120"}, {"herald_drills_active": "0x50 1x60"}),
    "HeraldClusterDisconnected": ({"herald_cluster_connected": "0x120"}, {"herald_cluster_connected": "1x120"}),
    "HeraldClusterWithoutLeader": (
        {"herald_cluster_streams_without_leader": "2x120"}, {"herald_cluster_streams_without_leader": "2x99 0x20"},
    ),
    "HeraldClusterBehind": (
        {'herald_cluster_follower_lag_seconds{stream="HERALD_TRUST"}': "20x120"},
        {'herald_cluster_follower_lag_seconds{stream="HERALD_TRUST"}': "3x120"},
    ),
    "HeraldClusterTrustNotShared": ({"herald_cluster_trust_shared": "0x120"}, {"herald_cluster_trust_shared": "1x120"}),
    "HeraldClusterNodeSilent": (
        {'herald_cluster_nodes{job="h",state="silent"}': "1x120"}, {'herald_cluster_nodes{job="h",state="left"}': "1x120"},
    ),
    "HeraldClusterNodesGone": (
        {'herald_cluster_nodes{job="h",state="live"}': "3x80 2x40"}, {'herald_cluster_nodes{job="h",state="live"}': "3x20 2x100"},
    ),
    "HeraldClusterServersFaulty": ({"herald_cluster_faults": "1x120"}, {"herald_cluster_faults": "0x120"}),
    "HeraldClusterForeignRecords": (
        {'herald_cluster_set_aside_total{kind="record"}': "0x95 1x20"}, {'herald_cluster_set_aside_total{kind="record"}': "5x120"},
    ),
    "HeraldRelayDown": ({'up{job="herald-relay"}': "0x120"}, {'up{job="herald-relay"}': "1x120"}),
    "HeraldRelayNotReady": ({"herald_relay_ready": "0x120"}, {"herald_relay_ready": "1x120"}),
    "HeraldRelayBehind": ({"herald_relay_oldest_unsent_seconds": "200x120"}, {"herald_relay_oldest_unsent_seconds": "20x120"}),
    "HeraldRelayBreakerOpen": ({"herald_relay_breakers_open": "1x120"}, {"herald_relay_breakers_open": "0x120"}),
    "HeraldRelayDatabaseFails": ({"herald_relay_store_failures_total": "0+1x120"}, {"herald_relay_store_failures_total": "9x120"}),
    "HeraldRelayRowsLost": (
        {'herald_relay_rows_total{instance="a",status="expired"}': "0x95 3x20"}, {'herald_relay_rows_total{instance="a",status="sent"}': "0x95 3x20"},
    ),
    "HeraldRelayRowsRefused": (
        {'herald_relay_rows_total{instance="a",status="refused"}': "0+50x120", 'herald_relay_rows_total{instance="a",status="sent"}': "0+50x120"},
        {'herald_relay_rows_total{instance="a",status="refused"}': "0+1x120", 'herald_relay_rows_total{instance="a",status="sent"}': "0+50x120"},
    ),
    "HeraldRelayCannotConnect": ({"herald_client_connection_failures_total": "0+10x120"}, {"herald_client_connection_failures_total": "0+1x120"}),
}


@pytest.mark.slow
def test_every_alert_fires_when_it_should_and_only_then(tmp_path):
    assert list(CASES) == list(alerts())
    tests = []
    for name, cases in CASES.items():
        for fires, series in zip((True, False), cases):
            query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
            tests.append({
                "interval": "1m",
                "input_series": [{"series": one, "values": values} for one, values in series.items()],
                "promql_expr_test": [{"expr": query, "eval_time": "100m", "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}],
            })
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    promtool("check", "rules", RULES)
    promtool("test", "rules", file)


def promtool(*arguments):
    result = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
