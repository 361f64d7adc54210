"""Sound files in the formats of notification sounds, made of samples."""

import struct


def aiff(samples, rate=22050):
    """16-bit mono AIFF."""
    data = struct.pack(f">{len(samples)}h", *samples)
    exponent = 16383 + 31
    mantissa = rate
    while mantissa < 1 << 31:
        mantissa, exponent = mantissa << 1, exponent - 1
    common = struct.pack(">hIhHII", 1, len(samples), 16, exponent, mantissa, 0)
    sound = struct.pack(">II", 0, 0) + data
    body = b"AIFF" + chunk(b"COMM", common) + chunk(b"SSND", sound)
    return b"FORM" + struct.pack(">I", len(body)) + body


def chunk(name, body, order=">"):
    return name + struct.pack(f"{order}I", len(body)) + body + b"\0" * (len(body) % 2)


def caf(kind, flags, bits, data, channels=1):
    width = bits // 8 * channels
    form = struct.pack(">d4sIIIII", 44100, kind, flags, width, 1, channels, bits)
    return b"caff\0\1\0\0" + b"desc" + struct.pack(">q", len(form)) + form + b"data" + struct.pack(">qI", -1, 0) + data


def wav(form, bits, data):
    body = b"WAVE" + chunk(b"fmt ", struct.pack("<HHIIHH", form, 1, 8000, 8000, 1, bits), "<") + chunk(b"data", data, "<")
    return b"RIFF" + struct.pack("<I", len(body)) + body
