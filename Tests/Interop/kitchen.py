"""The kitchen timer whole: a family's server, and people with a device each, on which the app in Swift runs."""

import json
import os
import plistlib
import queue
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

from agents import Agent, Local
from service import HERALD, PATIENCE, ROOT, eventually, free_port

APP = "com.example.kitchen"
BUNDLE = ROOT / "Examples" / "KitchenTimer" / "KitchenTimer.app"
KITCHEN = HERALD.with_name("KitchenTimer")
CODE = "salt-and-pepper"


class Running:
    """A command of the example: `server`, or `app`."""

    def __init__(self, command, *options):
        self.command = [KITCHEN, command, *map(str, options)]
        self.process = None
        self.url = None

    def start(self, port=None):
        self.process = subprocess.Popen(
            [*self.command, "--port", str(port or free_port())], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "KITCHEN_CODE": CODE},
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()
        # The app may find its device before it listens.
        self.early = []
        while "ready" not in self.early:
            self.early.append(self._next())
        (self.url,) = [line.split()[1] for line in self.early if " http://" in line]
        return self

    @staticmethod
    def _read(process, lines):
        for line in process.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    def _next(self):
        line = self.lines.get(timeout=PATIENCE)
        assert line is not None, f"{self.command[1]} ended with {self.process.wait(timeout=PATIENCE)}"
        return line

    def says(self, words):
        """Waits for a line with these words."""
        while words not in (self.early.pop(0) if self.early else self._next()):
            pass

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1].strip("/"))

    def ask(self, path, body=None, **headers):
        """The status and the body of an answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.loads(answer.read())

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE)


class Cook(Agent):
    """Somebody with a device, and the kitchen timer on it."""

    def __init__(self, name, service, folder, server):
        super().__init__(service, folder / name, service.device(name)[0])
        self.name = name
        self.app = Running("app", "--device", self.folder, "--server", server.url).start()
        self.bundle = folder / f"{name}-bundle" / "KitchenTimer.app"
        shutil.copytree(BUNDLE, self.bundle)
        plist = self.bundle / "Info.plist"
        information = plistlib.loads(plist.read_bytes())
        plist.write_bytes(plistlib.dumps({**information, "HeraldScreenURL": self.app.url}))
        self.start("--app", self.bundle, "--allow", "alert,badge,sound", "--screen", "0")
        self.url = self.next("screen")["url"]
        self.device_token = self.token(APP)
        self.app.says("got a device token")
        self.local = Local(self.folder)

    @property
    def device(self):
        return self.local.ask("device")["device"]

    @property
    def icon(self):
        (app,) = self.device["apps"]
        return app

    def act(self, do, **members):
        answer = self.local.ask(do, **members)
        assert "ok" in answer, answer

    def pending(self, count=1):
        """Waits until so many timers are to ring, and returns the time of each, by its identifier."""

        def found():
            pending = self.icon["pending"]
            return [pending] if len(pending) == count else None

        return {each["id"]: each["next"] for each in eventually(found, what=f"{count} rings on {self.name}'s device")[0]}

    def shows(self, body):
        """Waits for a notification with this text."""

        def found():
            return [shown for shown in self.device["notifications"] if shown["body"] == body]

        return eventually(found, what=f"{body!r} on {self.name}'s screen")[0]

    def close(self):
        self.local.close()
        self.app.close()
        super().close()


class Kitchen:
    """Ann and Bob, and their family's server."""

    def __init__(self, service, folder):
        self.service = service
        self.certificate = service.provider_certificate(APP)
        self.file = folder / "family.json"
        self.server = Running(
            "server", "--certificate", self.certificate, "--service", f"localhost:{service.listeners['api']}",
            "--ca", service.ca, "--file", self.file,
        ).start()
        self.ann, self.bob = (Cook(name, service, folder, self.server) for name in ("Ann", "Bob"))

    def _record(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {"members": {}, "book": {"timers": []}}

    def member(self, cook):
        """Everything that the server knows of somebody's device, at first nothing."""
        return self._record()["members"].get(cook.device["device"], {})

    def rests(self):
        """Stops all timers, and says whether everybody knows: none runs on the devices and on the server."""
        cooks = (self.ann, self.bob)
        running = [(cook, timer["id"]) for cook in cooks for timer in cook.app.ask("api/kitchen")[1]["timers"]]
        for cook, timer in running:
            assert cook.app.ask(f"api/timers/{timer}/STOP", {})[0] == 200
        known = all(timer["isStopped"] for timer in self._record()["book"]["timers"])
        return known and not running and not any(cook.icon["pending"] for cook in cooks)

    def close(self):
        for cook in (self.ann, self.bob):
            cook.close()
        self.server.close()
