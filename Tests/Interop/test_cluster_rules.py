"""The rules of every store engine, on three servers of which each keeps every message on its disk.

The Swift tests of `make test` play them on a single server, which syncs when it likes.
"""

import os
import re
import subprocess

from nats_servers import NATSTrio
from service import ROOT

#: A function of `ClusterStoreTests`.
RULES = "the stores on a NATS server keep every rule"
#: Accounts with streams of their own; a rule has one for itself. The password of each is its name.
ACCOUNTS = 200


def test_the_stores_keep_every_rule_on_three_servers(tmp_path, rounds):
    accounts = "\n".join(f"a{number} {{ jetstream: enabled; users: [{{ user: a{number}, password: a{number} }}] }}" for number in range(ACCOUNTS))
    played = 0
    for number in rounds:
        folder = tmp_path / str(number)
        folder.mkdir()
        trio = NATSTrio(folder, extra=f"accounts {{\n{accounts}\n}}")
        try:
            trio.start()
            # One after the other: each makes seven streams of three replicas.
            result = subprocess.run(
                ["swift", "test", "--skip-build", "--no-parallel", "--filter", RULES], cwd=ROOT, capture_output=True, text=True,
                env=os.environ | {"HERALD_DEVELOPMENT": "1", "HERALD_NATS_SERVERS": ",".join(trio.urls)},
            )
            output = result.stdout + result.stderr
            assert result.returncode == 0, output[-4000:]
            rules = int(re.search(r"with (\d+) test cases passed", output)[1])
            connections = sum(server.ask("varz")["total_connections"] for server in trio.servers)
            assert connections >= rules, "the rules were not played on these servers"
            played += rules
        finally:
            trio.close()
    rounds.report(rules=played)
