"""Results, printed as they come, and kept in Benchmarks/results.json."""

import json
import statistics

import aims
import machine

TARGET = machine.ROOT / "Benchmarks" / "results.json"


class Report:
    """The figures of one run.

    With `adds`, figures of an earlier run that this one does not measure stay as they are: each was measured beside its
    peer, whenever that was.
    """

    def __init__(self, adds):
        self.path = TARGET.relative_to(machine.ROOT)
        self._figures = json.loads(TARGET.read_text()) if adds and TARGET.exists() else {}
        self._measured = {}

    def figure(self, name, ours, peer, unit, peer_name, lower_is_better=False, note=None, by_cpu=None):
        """Notes a figure: medians of the rounds, and their ratio, which above 1 is better than the peer.

        `by_cpu` is the ratio of the CPU times, where there are any: it drifts less.
        """
        ours, peer = statistics.median(ours), statistics.median(peer)
        ratio = peer / ours if lower_is_better else ours / peer
        figure = {
            "ours": round(ours, 3), "peer": round(peer, 3), "ratio": round(ratio, 3), "unit": unit, "peer_name": peer_name,
        }
        if by_cpu is not None:
            figure["by_cpu"] = round(by_cpu, 3)
        self._figures[name] = self._measured[name] = figure
        print(f"{name:20} {ours:12,.2f}   {peer_name:9} {peer:12,.2f}   {unit:22} ratio {ratio:5.2f}", flush=True)
        outcome = aims.reached(name, figure)
        if outcome and not outcome[1]:
            self.say(f"short of its aim: {outcome[0]:.2f}, wanted {aims.AIMS[name]:.2f}")
        if note:
            self.say(note)
        TARGET.write_text(json.dumps(self._figures, indent=2, sort_keys=True) + "\n")

    def rates(self, name, ours, peer, unit, peer_name, note=None):
        """Notes a figure of outcomes with a rate each, and says what they cost, and the ratio of the costs."""
        by_cpu = median(peer, "cpu_us") / median(ours, "cpu_us")
        self.figure(name, [o["rate"] for o in ours], [o["rate"] for o in peer], unit, peer_name, by_cpu=by_cpu)
        self.say(f"ours {cost(ours)}; {peer_name} {cost(peer)}; by CPU {by_cpu:.2f}")
        if note:
            self.say(note)

    def say(self, text):
        print(f"{'':20}   {text}", flush=True)

    def end(self):
        """Prints what this run found short of its aim."""
        if not machine.latencies_are_undisturbed:
            print("without the right to real-time priority, what others did on this machine is in the times")
        short = aims.shortfalls(self._measured)
        if short:
            print("short of their aims; docs/performance.md says why:")
            print("\n".join(short), flush=True)


def median(outcomes, key):
    return statistics.median(o[key] for o in outcomes)


def times(ours, peer=None, peer_name="peer"):
    """The p50 and p99 of outcomes, and of a peer's."""
    def text(outcomes):
        return f"p50 {median(outcomes, 'p50_ms'):.2f}, p99 {median(outcomes, 'p99_ms'):.2f} ms"

    return text(ours) if peer is None else f"ours {text(ours)}; {peer_name} {text(peer)}"


def cost(outcomes):
    """Server CPU for each unit, and how busy server and load were."""
    waited = f", waiting {median(outcomes, 'waited'):.0%}" if "waited" in outcomes[0] else ""
    return (f"{median(outcomes, 'cpu_us'):.1f} us CPU each, server {median(outcomes, 'busy'):.0%}{waited} "
            f"and load {median(outcomes, 'load_busy'):.0%} of a core")
