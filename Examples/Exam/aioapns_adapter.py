"""An adapter of `herald exam` for aioapns, and a model for libraries on asyncio: all notifications are sent at once.

    herald exam --adapter 'python3 aioapns_adapter.py' --name 'aioapns 4.0'
"""

import asyncio
import json
import sys
import time

from aioapns import APNs, NotificationRequest, PushType


def tell(**answer):
    print(json.dumps(answer), flush=True)


async def send(client, order):
    # aioapns adds the time of now to what it calls the time to live.
    expiration = order.get("expiration")
    request = NotificationRequest(
        device_token=order["token"],
        message=order["payload"],
        time_to_live=None if expiration is None else expiration - int(time.time()),
        priority=order.get("priority"),
        collapse_key=order.get("collapse_id"),
        push_type=PushType(order.get("push_type", "alert")),
    )
    try:
        result = await client.send_notification(request)
    except Exception as error:  # whatever comes out of the library is its word
        tell(id=order["id"], outcome="failed", reason=type(error).__name__)
    else:
        outcome = "accepted" if result.is_successful else "refused"
        tell(id=order["id"], outcome=outcome, status=int(result.status), reason=result.description)


async def main():
    async with asyncio.TaskGroup() as sends:
        while line := await asyncio.to_thread(sys.stdin.readline):
            match json.loads(line):
                case {"do": "open", **place}:
                    if place["host"] != "api.push.apple.com":
                        tell(unsupported="host")
                    with open(place["key"]) as key:
                        client = APNs(key=key.read(), key_id=place["key_id"], team_id=place["team"], topic=place["topic"])
                case {"do": "send", **order}:
                    sends.create_task(send(client, order))
                case {"do": "close"}:
                    break
    client.pool.close()


asyncio.run(main())
