"""Herald's client of NATS as a program, driven by lines of JSON."""

import base64
import json
import queue
import signal
import subprocess
import threading

from service import HERALD, PATIENCE, eventually

NATS_BENCH = HERALD.with_name("NATSBench")


class Ended(Exception):
    """The program has ended, or is about to: it answers nothing any more."""


class NATSClient:
    """One connection: `NATSClient(url, token="x", tls_first=True)`. Orders wait for their answer; `send` does not.

    Payloads are bytes. Answers and events are the lines of the program, as dictionaries.
    """

    def __init__(self, *servers, **options):
        command = [str(NATS_BENCH), "drive"]
        for server in servers:
            command += ["--server", server]
        for name, value in options.items():
            option = f"--{name.replace('_', '-')}"
            command += [option] if value is True else [option, str(value)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.events = queue.Queue()
        self._answers, self._streams = {}, {}
        self._next = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        # A test may have paused it.
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            for message in [line.get("message"), *line.get("messages", [])]:
                if message:
                    message["payload"] = base64.b64decode(message["payload"])
            if "outcome" in line:
                self._answers[line["id"]].put(line)
            elif "id" in line:
                self._streams[line["id"]].put(line)
            else:
                self.events.put(line)
        # Whoever waits for an answer waits in vain.
        for answers in list(self._answers.values()):
            answers.put(None)

    # MARK: orders

    def send(self, order, payload=b"", **fields):
        """Gives an order; its number."""
        self._next += 1
        self._answers[self._next] = queue.Queue()
        self._streams[self._next] = queue.Queue()
        fields |= {"id": self._next, "do": order, "payload": base64.b64encode(payload).decode()}
        try:
            self.process.stdin.write(json.dumps(fields) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError) as error:
            raise Ended from error
        return self._next

    def answer(self, number, timeout=2 * PATIENCE):
        answer = self._answers[number].get(timeout=timeout)
        if answer is None:
            raise Ended
        return answer

    def ask(self, order, payload=b"", **fields):
        """Gives an order, and waits for its answer."""
        return self.answer(self.send(order, payload, **fields))

    def done(self, order, payload=b"", **fields):
        """The answer of an order that must succeed; a server that stood still for seconds is connected to again first."""
        answer = self._connected(order, payload, **fields)
        assert answer["outcome"] == "done", answer
        return answer

    def _connected(self, order, payload, **fields):
        """The answer of an order that waits for a connection."""

        def attempt():
            answer = self.ask(order, payload, **fields)
            return answer.get("kind") != "notConnected" and answer

        return eventually(attempt, what="a connection")

    def create(self, name, subjects, **configuration):
        """Creates a stream, which answers reads."""
        settings = {"name": name, "subjects": subjects, "allow_direct": True, **configuration}
        return self.done("create", configuration=settings)["info"]

    def store(self, subject, payload=b"", **fields):
        """The sequence of a message that must be stored, however busy the machine is."""
        answer = self._connected("store", payload, subject=subject, within=PATIENCE, **fields)
        assert answer["outcome"] == "stored", answer
        return answer["sequence"]

    # MARK: events

    def event(self, *names):
        """The next event of one of these names; others are skipped."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event["event"] in names:
                return event

    def connected(self):
        """Waits for a connection: the name of the server."""
        return self.event("connected")["server"]

    def refused(self, *kinds):
        """Waits until a connection ends for one of these reasons, and none is made; others may end by their time limit before."""
        for _ in range(20):
            event = self.event("connected", "disconnected")
            assert event["event"] == "disconnected", event
            if event["kind"] in kinds:
                return
        raise AssertionError(f"the connections end for another reason: {event}")

    def heard(self, number):
        """The next line of a subscription or an ordered consumer."""
        return self._streams[number].get(timeout=PATIENCE)

    def message(self, number):
        """The next message of a subscription or an ordered consumer."""
        while (line := self.heard(number))["event"] != "message":
            pass
        return line["message"]
