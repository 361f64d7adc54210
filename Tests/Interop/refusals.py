"""Log lines and counts of refused connections."""

import re
import urllib.request

from service import PATIENCE, eventually


def refused(service, listener, reason):
    """The number of connections that a listener refused for this reason."""
    url = f"http://127.0.0.1:{service.listeners['console']}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        lines = re.findall(r"^herald_connections_refused_total\{(.*)\} ([\d.]+)$", answer.read().decode(), re.M)
    return sum(float(value) for labels, value in lines if f'reason="{reason}"' in labels and f'listener="{listener}"' in labels)


def told(service, count=0):
    """The lines of the log about refused connections; none names a file of the machine that built the service.

    Waits for as many as there have to be: what was counted may not have been read yet.
    """
    def found():
        return [line for line in service.lines if "connection refused" in line]

    eventually(lambda: len(found()) >= count, what=f"{count} lines about refused connections")
    lines = found()
    assert not [line for line in lines if "BoringSSL" in line or "checkouts" in line or "Error:" in line], lines
    return lines
