"""Measures Herald beside its peers, in turn, each server on one core and its load on the others.

Machines drift by more than servers differ, so nothing is compared but runs of the same minutes: the rounds alternate,
and a figure is the ratio of their medians. CPU time per unit is printed beside each rate: it drifts less.
"""

import dataclasses
import os
import shutil
import sys
import time
import traceback

import machine
from broadcast_figures import broadcast
from cluster_figures import cluster
from console_figures import console
from crowd_figures import crowd
from device_figures import courier, courier_loops, courier_many, handshakes, idle_memory, reconnect
from identities import Identities
from ledger_figures import ledger
from nats_figures import nats
from provider_figures import accept, client, gateway, gateway_connected, gateway_loops, relay
from report import Report
from store_figures import store

# The groups of measurements, and the figures of each. A run can name either.
GROUPS = {
    gateway: ["gateway", "gateway_p99", "gateway_sync_1ms", "gateway_sync_5ms"],
    gateway_loops: ["gateway_loops"],
    gateway_connected: ["gateway_connected"],
    accept: ["accept", "accept_nginx"],
    client: ["client"],
    relay: ["relay"],
    courier: ["courier", "courier_api", "courier_alone", "courier_p99"],
    courier_loops: ["courier_loops"],
    courier_many: ["courier_9000"],
    broadcast: ["broadcast"],
    handshakes: ["handshake_full", "handshake_full_limit", "handshake_resumed", "handshake_resumed_limit"],
    reconnect: ["reconnect", "reconnect_limit"],
    idle_memory: ["idle_memory", "idle_memory_limit", "idle_memory_churn", "idle_memory_churn_limit"],
    store: ["store", "store_sync_1ms", "store_sync_5ms", "store_queue"],
    nats: ["nats"],
    cluster: ["cluster_commit", "cluster_elsewhere", "cluster_elsewhere_nats", "cluster_elsewhere_p50", "cluster_nodes_2", "cluster_nodes_3",
              "cluster_arrival"],
    console: ["console_task", "console_input", "console_heap", "console_viewers"],
    ledger: ["ledger_enroll", "ledger_revoke", "ledger_start", "ledger_list"],
    crowd: ["crowd"],
}
# A run measures them only if it names them: more than half an hour, and most of a machine's memory.
ON_REQUEST = {crowd}


@dataclasses.dataclass
class Settings:
    """The extent of the measurements; docs/performance.md describes each."""

    rounds: int = machine.number("ROUNDS", 5)
    seconds: int = machine.number("SECONDS", 4, least=2)
    devices: int = machine.number("DEVICES", 1000, least=1000)
    many: int = machine.number("MANY", 9000, least=1000)
    gateway_devices: int = machine.number("GATEWAY_DEVICES", 10_000, least=1000)
    relay_rows: int = machine.number("RELAY_ROWS", 100_000, least=1000)
    broadcast: int = machine.number("BROADCAST", 10_000, least=1000)
    idle: int = machine.number("IDLE", 10_000, least=100)
    idle_rounds: int = machine.number("IDLE_ROUNDS", 2)
    console: int = machine.number("CONSOLE", 60, least=5)
    reconnect: int = machine.number("RECONNECT", 2000, least=100)
    crowd: int = machine.number("CROWD", 200_000, least=2000)
    crowd_hold: int = machine.number("CROWD_HOLD", 600)
    identities: Identities = None

    def devices_for(self, groups):
        """The number of identities, and the maximum of connections in one process."""
        identities, connections = self.devices, self.devices
        if {gateway, gateway_loops, relay, console} & set(groups):
            identities = max(identities, self.gateway_devices)
        if courier_many in groups:
            identities, connections = max(identities, self.many), max(connections, self.many)
        if broadcast in groups:
            # One more is the peer's publisher.
            identities, connections = max(identities, self.broadcast + 1), max(connections, self.broadcast)
        if idle_memory in groups:
            identities, connections = max(identities, self.idle // 2 * 3), max(connections, self.idle)
        if crowd in groups:
            identities = max(identities, self.crowd)
        return max(identities, self.reconnect), connections


def main():
    names = sys.argv[1:]
    known = [name for group, figures in GROUPS.items() for name in dict.fromkeys([group.__name__, *figures])]
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no figure {', '.join(unknown)}; there are: {', '.join(known)}")
    groups = [group for group, figures in GROUPS.items()
              if ({group.__name__, *figures} & set(names) if names else group not in ON_REQUEST)]
    settings = Settings()
    identities, connections = settings.devices_for(groups)
    machine.check(["taskset", "openssl", "h2load", "nghttpd", "nginx", "mosquitto"],
                  ["herald", "ClientBench", "DeviceLoad", "CourierBench", "GatewayBench", "LedgerBench", "NATSBench", "StoreBench",
                   "libSlowSync.so"], connections)
    # Settings of a service that somebody runs here are none of the measured one.
    for name in [name for name in os.environ if name.startswith("HERALD_")]:
        del os.environ[name]
    shutil.rmtree(machine.WORK, ignore_errors=True)
    machine.WORK.mkdir(parents=True)
    began = time.monotonic()
    machine.warn_if_busy()
    print(f"{machine.describe()}; {settings.rounds} rounds of {settings.seconds} s in turn")
    settings.identities = Identities(machine.ROOT / ".build" / "bench-identities", identities)
    report = Report(adds=bool(names))
    failed = False
    for group in groups:
        try:
            group(settings, report)
        except Exception:
            # The others are worth their minutes all the same.
            print(f"{GROUPS[group][0]}: {traceback.format_exc()}", file=sys.stderr, flush=True)
            failed = True
            continue
        # The next one's disk; logs stay.
        for folder in machine.WORK.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder)
    report.end()
    print(f"{(time.monotonic() - began) / 60:.0f} minutes; {report.path}")
    if failed:
        sys.exit(f"not all was measured; what the servers said is in {machine.WORK}")


main()
