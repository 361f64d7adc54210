"""One worker that shakes hands with a server as a device, over and over: PORT CA IDENTITY SECONDS full|resumed.

After each handshake it sends what no MQTT server takes first, and waits for the end: then the server has finished its part
of the handshake too, the client's certificate included.
"""

import json
import socket
import ssl
import struct
import sys
import time

PINGREQ = bytes([0xC0, 0x00])


def shake(context, port, session=None):
    """Whether the session was resumed, and the session to go on with."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=10)
    # Closed by a reset: thousands of closed ports would wait otherwise.
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(raw, server_hostname="localhost", session=session) as connection:
        connection.sendall(PINGREQ)
        try:
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass
        return connection.session_reused, connection.session


def main():
    port, ca, identity, seconds, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), sys.argv[5]
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(identity)
    context.check_hostname = False
    _, session = shake(context, port)
    if kind == "full":
        session = None
    elif not shake(context, port, session)[0]:
        sys.exit("the server resumes no session")
    print("ready", flush=True)
    sys.stdin.readline()
    times, end = [], time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        resumed, _ = shake(context, port, session)
        if resumed != (kind == "resumed"):
            sys.exit(f"a handshake was {'resumed' if resumed else 'full'} and should not have been")
        times.append(round((time.monotonic() - began) * 1000, 3))
    print(json.dumps({"milliseconds": times}), flush=True)


main()
