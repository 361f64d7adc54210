"""The aim of each figure; docs/performance.md has the same table, and says why where a figure is short of its aim."""

#: The ratio to the peer that is wanted, by CPU time where the figure has it; above 1 is better than the peer.
AIMS = {
    "gateway": 0.85,
    "gateway_p99": 1.0,
    "gateway_sync_1ms": 0.85,
    "gateway_sync_5ms": 0.85,
    "accept": 0.7,
    "accept_nginx": 1.6,
    "client": 0.5,
    "relay": 0.5,
    "courier": 1.1,
    "courier_api": 0.9,
    "courier_9000": 1.2,
    "courier_p99": 0.8,
    # Within 15 % of what TLS and the kernel alone take.
    "handshake_full_limit": 0.87,
    "handshake_resumed_limit": 0.87,
    "reconnect_limit": 0.87,
    "idle_memory_limit": 0.87,
    "idle_memory_churn_limit": 0.87,
    "nats": 0.9,
    "cluster_commit": 0.8,
    # 1.4 of one machine's CPU time.
    "cluster_elsewhere": 0.71,
    "cluster_elsewhere_nats": 1.0,
    "cluster_elsewhere_p50": 1.0,
    "console_task": 1.0,
    "console_input": 1.0,
    "console_heap": 1.0,
    "console_viewers": 0.97,
    "store": 0.5,
    "store_queue": 1.0,
}


def reached(name, figure):
    """The ratio that counts for the aim, and whether it is reached; None for a figure without an aim."""
    if name not in AIMS:
        return None
    ratio = figure.get("by_cpu", figure["ratio"])
    return ratio, ratio >= AIMS[name]


def shortfalls(figures):
    """A line for each figure that is short of its aim."""
    lines = []
    for name in AIMS:
        outcome = reached(name, figures[name]) if name in figures else None
        if outcome and not outcome[1]:
            lines.append(f"{name:20} {outcome[0]:5.2f} of {AIMS[name]:.2f}")
    return lines
