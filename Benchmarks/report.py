"""Results, printed as they come, and kept in Benchmarks/results.json."""

import json
import statistics

from machine import ROOT

TARGET = ROOT / "Benchmarks" / "results.json"


class Report:
    """The figures of one run.

    With `adds`, figures of an earlier run that this one does not measure stay as they are: each was measured beside its
    peer, whenever that was.
    """

    def __init__(self, adds):
        self.path = TARGET.relative_to(ROOT)
        self._figures = json.loads(TARGET.read_text()) if adds and TARGET.exists() else {}

    def figure(self, name, ours, peer, unit, peer_name, lower_is_better=False, note=None):
        """Notes a figure: medians of the rounds, and their ratio, which above 1 is better than the peer."""
        ours, peer = statistics.median(ours), statistics.median(peer)
        ratio = peer / ours if lower_is_better else ours / peer
        self._figures[name] = {
            "ours": round(ours, 3), "peer": round(peer, 3), "ratio": round(ratio, 3), "unit": unit, "peer_name": peer_name,
        }
        print(f"{name:20} {ours:12,.2f}   {peer_name:9} {peer:12,.2f}   {unit:22} ratio {ratio:5.2f}", flush=True)
        if note:
            self.say(note)
        TARGET.write_text(json.dumps(self._figures, indent=2, sort_keys=True) + "\n")

    def rates(self, name, ours, peer, unit, peer_name, note=None):
        """Notes a figure of outcomes with a rate each, and says what they cost, and the ratio of the costs."""
        self.figure(name, [o["rate"] for o in ours], [o["rate"] for o in peer], unit, peer_name)
        self.say(f"ours {cost(ours)}; {peer_name} {cost(peer)}; by CPU {median(peer, 'cpu_us') / median(ours, 'cpu_us'):.2f}")
        if note:
            self.say(note)

    def say(self, text):
        print(f"{'':20}   {text}", flush=True)


def median(outcomes, key):
    return statistics.median(o[key] for o in outcomes)


def cost(outcomes):
    """Server CPU for each unit, and how busy server and load were."""
    return (f"{median(outcomes, 'cpu_us'):.1f} us CPU each, server {median(outcomes, 'busy'):.0%} "
            f"and load {median(outcomes, 'load_busy'):.0%} of a core")
