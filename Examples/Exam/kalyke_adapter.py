"""An adapter of `herald exam` for kalyke: one client, and all notifications at once.

    herald exam --adapter 'python3 kalyke_adapter.py' --name 'kalyke 1.5.0'
"""

import asyncio
import json
import sys

from httpx2 import ConnectError, ConnectTimeout, TransportError
from kalyke import ApnsClient, ApnsConfig, ApnsPriority, ApnsPushType
from kalyke.exceptions import ApnsProviderException


def tell(**answer):
    print(json.dumps(answer), flush=True)


async def send(client, topic, order):
    # Without an expiration, kalyke writes that of 30 days.
    options = {name: order[name] for name in ("expiration", "collapse_id") if name in order}
    kind, priority = ApnsPushType(order.get("push_type", "alert")), ApnsPriority(order.get("priority", 10))
    config = ApnsConfig(topic=topic, push_type=kind, priority=priority, **options)
    try:
        await client.send_message(order["token"], order["payload"], config)
    except ApnsProviderException as error:
        # The library tells the reason as a class, and not the status.
        tell(id=order["id"], outcome="refused", reason=type(error).__name__)
    except TransportError as error:
        # Of the errors of httpx, these two alone say that nothing was sent.
        outcome = "failed" if isinstance(error, (ConnectError, ConnectTimeout)) else "unknown"
        tell(id=order["id"], outcome=outcome, reason=type(error).__name__)
    except Exception as error:  # such as an AttributeError for a reason that kalyke does not know
        tell(id=order["id"], outcome="failed", reason=f"{type(error).__name__}: {error}")
    else:
        tell(id=order["id"], outcome="accepted")


async def main():
    async with asyncio.TaskGroup() as sends:
        while line := await asyncio.to_thread(sys.stdin.readline):
            match json.loads(line):
                case {"do": "open", **place}:
                    if place["host"] != "api.push.apple.com":
                        tell(unsupported="host")
                    client = ApnsClient(
                        use_sandbox=False, team_id=place["team"], auth_key_id=place["key_id"], auth_key_filepath=place["key"]
                    )
                case {"do": "send", **order}:
                    sends.create_task(send(client, place["topic"], order))
                case {"do": "close"}:
                    break


asyncio.run(main())
