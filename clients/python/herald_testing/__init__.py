"""A Herald push service for a test suite: the `herald` binary as a process, and virtual devices.

With pytest use the fixtures `herald`, `own_herald` and `device`. Elsewhere:

    with Herald() as herald, herald.device() as device:
        token = device.install("com.example.chat")
        herald.send(token, "com.example.chat", alert="Hello")
        assert device.wait_for("com.example.chat").body == "Hello"
"""

from .binary import HeraldMissing, HeraldTooOld
from .caught import Caught
from .device import Device, Notification
from .child.sitecustomize import AppleRefused
from .errors import HeraldError, HeraldTimeout, HeraldUnexpected
from .service import Answer, Herald, ProviderKey

__all__ = [
    "Answer", "AppleRefused", "Caught", "Device", "Herald", "HeraldError", "HeraldMissing", "HeraldTimeout", "HeraldTooOld",
    "HeraldUnexpected", "Notification", "ProviderKey",
]
