"""Sends a notification with aioapns, which knows no other host than Apple's: sender.py TOKEN TEXT"""

import asyncio
import pathlib
import sys

from aioapns import APNs, NotificationRequest


async def main(token, text):
    (key,) = pathlib.Path("/run/herald").glob("AuthKey_*.p8")
    client = APNs(key=key.read_text(), key_id=key.stem[8:], team_id="TEAM123456", topic="com.example.chat")
    answer = await client.send_notification(NotificationRequest(device_token=token, message={"aps": {"alert": text}}))
    client.pool.close()
    print(answer.status, answer.description or "")
    return 0 if answer.is_successful else 1


sys.exit(asyncio.run(main(*sys.argv[1:])))
