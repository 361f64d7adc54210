"""An adapter of `herald exam` for pyapns-client, and a model for blocking libraries: one notification after the other.

    herald exam --adapter 'python3 pyapns_client_adapter.py' --name 'pyapns-client 2.0.6'
"""

import json
import sys

from pyapns_client import APNSClient, IOSNotification, IOSPayload, IOSPayloadAlert
from pyapns_client.exceptions import APNSException

#: The members of `aps` that the library's payload has under other names.
NAMES = {"thread-id": "thread_id", "content-available": "content_available", "mutable-content": "mutable_content"}


def tell(**answer):
    print(json.dumps(answer), flush=True)


def payload(order):
    """The payload in the library's own classes, as its users write it."""
    custom = dict(order["payload"])
    aps = dict(custom.pop("aps"))
    alert = aps.pop("alert", None)
    if alert is not None:
        alert = IOSPayloadAlert(body=alert) if isinstance(alert, str) else IOSPayloadAlert(**alert)
    return IOSPayload(alert=alert, custom=custom, **{NAMES.get(name, name): value for name, value in aps.items()})


def send(client, topic, order):
    # Its HTTP library takes header fields as texts alone.
    texts = {name: str(order[name]) for name in ("expiration", "priority", "push_type", "collapse_id") if name in order}
    try:
        client.push(IOSNotification(payload=payload(order), topic=topic, **texts), order["token"])
    except APNSException as error:
        reason = type(error).__name__.removesuffix("Exception")
        tell(id=order["id"], outcome="refused" if error.status_code else "failed", status=error.status_code, reason=reason)
    except Exception as error:  # such as a NotImplementedError for a reason that the library does not know
        tell(id=order["id"], outcome="failed", reason=f"{type(error).__name__}: {error}")
    else:
        tell(id=order["id"], outcome="accepted")


for line in sys.stdin:
    match json.loads(line):
        case {"do": "open", **place}:
            if place["host"] != "api.push.apple.com":
                tell(unsupported="host")
            client = APNSClient(
                mode=APNSClient.MODE_PROD, root_cert_path=place["ca"], auth_key_path=place["key"],
                auth_key_id=place["key_id"], team_id=place["team"],
            )
        case {"do": "send", **order}:
            send(client, place["topic"], order)
        case {"do": "close"}:
            client.close()
            break
