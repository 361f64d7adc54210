"""Unmodified clients with Apple's addresses built in: a hosts file and their trusted roots lead them to Herald.

That is the recipe that `herald init --as-apple` prints.
"""

import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from parties import new_id
from provider import HELLO, away_device, listening_device
from service import PATIENCE, ROOT, TOPIC, Service, eventually, herald

AIOAPNS = textwrap.dedent(
    """
    import asyncio, json, sys
    from aioapns import APNs, NotificationRequest, PushType

    async def main():
        order = json.load(sys.stdin)
        client = APNs(max_connection_attempts=1, **order["client"])
        requests = [
            NotificationRequest(push_type=PushType(request.pop("push_type", "alert")), **request)
            for request in order["requests"]
        ]
        results = await asyncio.gather(*[client.send_notification(request) for request in requests])
        json.dump(
            [[r.notification_id, r.status, r.description, r.timestamp] for r in results], sys.stdout
        )
        client.pool.close()

    asyncio.run(main())
    """
)


#: On httpx2; makes a token for each request, with `iat` as text, and a connection for each.
KALYKE = textwrap.dedent(
    """
    import asyncio, json, sys
    from kalyke import ApnsClient, ApnsConfig, ApnsPushType, Payload
    from kalyke.exceptions import ApnsProviderException

    async def main():
        order = json.load(sys.stdin)
        client, found = ApnsClient(**order["client"]), []
        for request in order["requests"]:
            config = ApnsConfig(topic=request["topic"], identifier=request.get("id"))
            try:
                found.append(await client.send_message(request["token"], Payload(alert="hello"), config))
            except ApnsProviderException as error:
                found.append(type(error).__name__)
        json.dump(found, sys.stdout)

    asyncio.run(main())
    """
)

#: On httpx; writes `iat` with a fraction.
PYAPNS_CLIENT = textwrap.dedent(
    """
    import json, sys
    from pyapns_client import APNSClient, IOSNotification, IOSPayload, IOSPayloadAlert
    from pyapns_client.exceptions import APNSException

    order = json.load(sys.stdin)
    client, found = APNSClient(**order["client"]), []
    for request in order["requests"]:
        payload = IOSPayload(alert=IOSPayloadAlert(title="Hello", body="world"))
        try:
            client.push(IOSNotification(payload=payload, topic=request["topic"]), request["token"])
            found.append("sent")
        except APNSException as error:
            found.append(type(error).__name__)
    client.close()
    json.dump(found, sys.stdout)
    """
)


NAMES = ("api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com")


@pytest.fixture(scope="module")
def apple(tmp_path_factory):
    """A service under Apple's names: in a network of its own, where these names lead to the loopback.

    Processes enter that network with `apple.inside`.
    """
    folder = tmp_path_factory.mktemp("apple")
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {name}\n" for name in NAMES))
    data = folder / "data"
    herald("init", "--data", data, "--as-apple")
    own = ["unshare", "--mount", "--net", *(["--map-root-user"] if os.geteuid() else [])]
    enter = f'ip link set lo up && mount --bind {hosts} /etc/hosts && exec "$@"'
    service = Service(data, prefix=[*own, "sh", "-c", enter, "sh"])
    service.start("--api-port", "443")
    namespaces = ["--mount", "--net", *(["--user", "--preserve-credentials"] if os.geteuid() else [])]
    service.inside = ["nsenter", "--target", str(service.pid), *namespaces]
    yield service
    service.close()


def run(service, program, client, requests):
    """Runs a program with a client in the network where Apple's names lead to the service; its findings."""
    result = subprocess.run(
        [*service.inside, sys.executable, "-c", program],
        input=json.dumps({"client": client, "requests": requests}),
        env={**os.environ, "SSL_CERT_FILE": str(service.ca)}, capture_output=True, text=True, timeout=2 * PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


class TestAioapns:
    """It cannot be told another host, offers no ALPN, sends `host` for `:authority`, and opens 1,000 streams at once."""

    @staticmethod
    def by_key(service, **more):
        path, kid, team = service.provider_key()
        return {"key": path.read_text(), "key_id": kid, "team_id": team, "topic": TOPIC} | more

    def test_a_notification_arrives_by_certificate(self, apple):
        with listening_device(apple, prefix=apple.inside) as device:
            request = {"device_token": device.token, "message": HELLO, "notification_id": new_id()}
            (result,) = run(apple, AIOAPNS, {"client_cert": str(apple.provider_certificate())}, [request])
            assert result == [request["notification_id"], "200", None, None]
            assert device.next().id == request["notification_id"]

    @pytest.mark.slow
    def test_many_requests_on_a_new_token_connection_all_arrive(self, apple):
        devices = [away_device(apple, prefix=apple.inside) for _ in range(3)]
        requests = [
            {"device_token": devices[n % 3].token, "message": {"aps": {"alert": f"número {n} 👋"}}, "notification_id": new_id()}
            for n in range(900)
        ]
        results = run(apple, AIOAPNS, self.by_key(apple, max_connections=1), requests)
        assert [result[:2] for result in results] == [[request["notification_id"], "200"] for request in requests]
        for device in devices:
            with device.start():
                device.next()

    @pytest.mark.slow
    def test_more_requests_than_streams_are_served(self, apple):
        device = away_device(apple, prefix=apple.inside)
        requests = [{"device_token": device.token, "message": HELLO} for _ in range(1200)]
        results = run(apple, AIOAPNS, self.by_key(apple, max_connections=1), requests)
        assert {status for _, status, _, _ in results} == {"200"}

    def test_background_notifications_over_the_budget_are_accepted_and_held(self, apple):
        with listening_device(apple, prefix=apple.inside) as device:
            requests = [
                {
                    "device_token": device.token, "message": {"aps": {"content-available": 1}, "n": n}, "priority": 5,
                    "notification_id": new_id(), "push_type": "background",
                }
                for n in range(5)
            ]
            # The first shows that notifications go straight to the device; it costs no budget.
            first = {"device_token": device.token, "message": HELLO, "notification_id": new_id()}
            run(apple, AIOAPNS, self.by_key(apple), [first])
            assert device.next().id == first["notification_id"]
            # On one connection: behind a load balancer, several reach several nodes, and each has a budget of its own.
            results = run(apple, AIOAPNS, self.by_key(apple, max_connections=1), requests)
            assert [result[1] for result in results] == ["200"] * 5
            assert {device.next().id for _ in range(3)} <= {request["notification_id"] for request in requests}
            held = lambda: [r for r in requests if "background budget" in str(apple.journal(r["notification_id"]))]
            eventually(lambda: len(held()) == 2, what="two lines about the budget")

    def test_refusals_match_their_requests(self, apple):
        device = away_device(apple, prefix=apple.inside)
        requests = [
            {"device_token": device.token if n % 2 else f"{n:064x}", "message": HELLO, "notification_id": new_id()}
            for n in range(100)
        ]
        results = run(apple, AIOAPNS, self.by_key(apple), requests)
        for n, (request, result) in enumerate(zip(requests, results, strict=True)):
            wanted = ["200", None] if n % 2 else ["400", "BadDeviceToken"]
            assert result[:3] == [request["notification_id"], *wanted]

    def test_the_sandbox_name_selects_the_sandbox(self, apple):
        device = away_device(apple, prefix=apple.inside)
        request = {"device_token": device.token, "message": HELLO}
        (result,) = run(apple, AIOAPNS, self.by_key(apple, use_sandbox=True), [request])
        assert result[1:3] == ["400", "BadDeviceToken"]


class TestKalyke:
    """It cannot be told another host than Apple's two."""

    @staticmethod
    def client(service, **more):
        path, kid, team = service.provider_key()
        return {"use_sandbox": False, "team_id": team, "auth_key_id": kid, "auth_key_filepath": str(path)} | more

    def test_notifications_arrive_and_refusals_are_recognized(self, apple):
        with listening_device(apple, prefix=apple.inside) as device:
            # From then on they go straight to the device: before, one that is stored would replace the one before it.
            run(apple, AIOAPNS, TestAioapns.by_key(apple), [{"device_token": device.token, "message": HELLO}])
            device.next()
            id = new_id()
            requests = [
                {"topic": TOPIC, "token": device.token, "id": id},
                {"topic": TOPIC, "token": "0" * 64},
                {"topic": TOPIC, "token": device.token},
            ]
            first, refused, second = run(apple, KALYKE, self.client(apple), requests)
            assert (first, refused) == (id, "BadDeviceToken")
            assert [device.next().id, device.next().id] == [id, second.lower()]

    def test_the_sandbox_is_separate(self, apple):
        device = away_device(apple, prefix=apple.inside)
        requests = [{"topic": TOPIC, "token": device.token}]
        assert run(apple, KALYKE, self.client(apple, use_sandbox=True), requests) == ["BadDeviceToken"]


class TestPyapnsClient:
    """It knows Apple's hosts only; what it is to trust it is told, or takes from the environment."""

    @staticmethod
    def client(service):
        path, kid, team = service.provider_key()
        return {
            "mode": "prod", "root_cert_path": str(service.ca), "auth_key_path": str(path), "auth_key_id": kid,
            "team_id": team,
        }

    def test_notifications_arrive_and_refusals_are_recognized(self, apple):
        with listening_device(apple, prefix=apple.inside) as device:
            # From then on they go straight to the device: before, one that is stored would replace the one before it.
            run(apple, AIOAPNS, TestAioapns.by_key(apple), [{"device_token": device.token, "message": HELLO}])
            device.next()
            requests = [{"topic": TOPIC, "token": token} for token in (device.token, "0" * 64, device.token)]
            found = run(apple, PYAPNS_CLIENT, self.client(apple), requests)
            assert found == ["sent", "BadDeviceTokenException", "sent"]
            for _ in range(2):
                assert device.next().json["aps"]["alert"] == {"title": "Hello", "body": "world"}


class TestPage:
    """The lines of docs/libraries.md, with the words in capitals filled in."""

    PAGE = (ROOT / "docs" / "libraries.md").read_text()
    LIBRARIES = dict(re.findall(r"^### ([^\n]+)\n\n.*?^```\w+\n(.*?)^```$", PAGE, re.M | re.S))

    @staticmethod
    def anchor(heading):
        return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")

    def test_each_library_is_in_the_table_and_those_that_are_not_run_say_so(self):
        rows = dict(re.findall(r"^\| \[[^]]+\]\(#([^)]+)\).*\| ([^|]+) \|$", self.PAGE, re.M))
        sections = {self.anchor(text.split("\n")[0]): text for text in self.PAGE.split("\n### ")[1:]}
        assert set(rows) == set(sections) == {self.anchor(name) for name in self.LIBRARIES}
        for name, section in sections.items():
            assert (rows[name] == "yes") == ("```python" in section) == ("ried by hand." not in section and "Not tried." not in section), name

    @pytest.mark.parametrize("name", re.findall(r"^### ([^\n]+)$", PAGE.split("## Python")[1].split("\n## ")[0], re.M))
    def test_the_lines_of_a_library_send_a_notification(self, apple, name, tmp_path):
        path, kid, team = apple.provider_key()
        (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "herald-data").symlink_to(apple.data)
        with listening_device(apple, prefix=apple.inside) as device:
            values = {"KEYID": kid, "TEAM123456": team, "TOKEN": device.token, "2197": str(apple.listeners["api"])}
            lines = re.sub(r"KEYID|TEAM123456|TOKEN|2197", lambda found: values[found[0]], self.LIBRARIES[name])
            result = subprocess.run(
                [*apple.inside, "sh", "-c", 'cd "$0" && exec "$@"', tmp_path, sys.executable, "-c", lines],
                env={**os.environ, "SSL_CERT_FILE": str(apple.ca)}, capture_output=True, text=True, timeout=2 * PATIENCE,
            )
            assert result.returncode == 0, result.stderr
            alert = device.next().json["aps"]["alert"]
            assert alert == "Hello" or alert["body"] == "Hello"
