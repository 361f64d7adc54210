// Decodes the formats of notification sounds: AIFF, AIFF-C, CAF and WAV with linear PCM, µ-law or A-law.

const MOST_CHANNELS = 8;

/** Decodes a file. Returns `{ rate, channels: [Float32Array] }`, or null for unknown formats. */
export function decode(view) {
  try {
    const kind = ascii(view, 0);
    const form = kind === "caff" ? caf(view) : kind === "FORM" ? aiff(view) : kind === "RIFF" ? wav(view) : null;
    return form?.read && form.data ? samples(view, form) : null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function ascii(view, at) {
  return String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));
}

/** The chunks of an IFF or RIFF file by name: `{ at, size }` of their content. */
function chunks(view, little) {
  const found = {};
  for (let at = 12; at + 8 <= view.byteLength;) {
    const size = view.getUint32(at + 4, little);
    found[ascii(view, at)] ??= { at: at + 8, size };
    at += 8 + size + (size % 2);
  }
  return found;
}

function aiff(view) {
  const { COMM: common, SSND: sound } = chunks(view, false);
  if (!common || !sound) return null;
  const bits = view.getUint16(common.at + 6);
  const compression = ascii(view, 8) === "AIFC" ? ascii(view, common.at + 18) : "NONE";
  return {
    rate: extended(view, common.at + 8),
    count: view.getUint16(common.at),
    data: { at: sound.at + 8 + view.getUint32(sound.at), size: sound.size - 8 },
    ...reader(compression, bits),
  };
}

/** The 80-bit float of the rate in AIFF. */
function extended(view, at) {
  const exponent = (view.getUint16(at) & 0x7fff) - 16383 - 31;
  return view.getUint32(at + 2) * 2 ** exponent;
}

function caf(view) {
  let form = null;
  for (let at = 8; at + 12 <= view.byteLength;) {
    const name = ascii(view, at);
    const size = Number(view.getBigInt64(at + 4));
    const body = at + 12;
    if (name === "desc") {
      const kind = ascii(view, body + 8);
      const flags = view.getUint32(body + 12);
      const bits = view.getUint32(body + 28);
      const linear = flags & 1 ? "float" : flags & 2 ? "sowt" : "NONE";
      form = {
        rate: view.getFloat64(body),
        count: view.getUint32(body + 24),
        ...reader(kind === "lpcm" ? linear : kind, bits, Boolean(flags & 2)),
      };
    }
    // A size of −1 means: to the end of the file.
    if (name === "data") return { ...form, data: { at: body + 4, size: (size < 0 ? view.byteLength - body : size) - 4 } };
    if (size < 0) return null;
    at = body + size;
  }
  return null;
}

function wav(view) {
  const { "fmt ": form, data } = chunks(view, true);
  if (!form || !data) return null;
  const bits = view.getUint16(form.at + 14, true);
  const kind = { 1: bits === 8 ? "raw " : "sowt", 3: "float", 6: "alaw", 7: "ulaw" }[view.getUint16(form.at, true)];
  return { rate: view.getUint32(form.at + 4, true), count: view.getUint16(form.at + 2, true), data, ...reader(kind, bits, true) };
}

/** A function that reads a sample, and the bytes of a sample. */
function reader(kind, bits, little = false) {
  const width = Math.ceil(bits / 8);
  switch (kind) {
    case "NONE":
    case "twos":
      return { width, read: (view, at) => whole(view, at, width, false) };
    case "sowt":
      return { width, read: (view, at) => whole(view, at, width, true) };
    case "raw ":
      return { width: 1, read: (view, at) => view.getUint8(at) / 128 - 1 };
    case "float":
    case "fl32":
    case "FL32":
      return bits === 64
        ? { width: 8, read: (view, at) => view.getFloat64(at, little) }
        : { width: 4, read: (view, at) => view.getFloat32(at, little) };
    case "ulaw":
    case "ULAW":
      return { width: 1, read: (view, at) => muLaw(view.getUint8(at)) };
    case "alaw":
    case "ALAW":
      return { width: 1, read: (view, at) => aLaw(view.getUint8(at)) };
    default:
      return {};
  }
}

function whole(view, at, width, little) {
  switch (width) {
    case 1: return view.getInt8(at) / 0x80;
    case 2: return view.getInt16(at, little) / 0x8000;
    case 3: {
      const [low, middle, high] = little ? [0, 1, 2] : [2, 1, 0];
      return (view.getInt8(at + high) * 0x10000 + view.getUint8(at + middle) * 0x100 + view.getUint8(at + low)) / 0x800000;
    }
    case 4: return view.getInt32(at, little) / 0x80000000;
    default: throw new RangeError(`samples of ${width} bytes`);
  }
}

/** ITU-T G.711, table 2a. */
function muLaw(byte) {
  const code = ~byte & 0xff;
  const size = (((code & 0x0f) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84;
  return (code & 0x80 ? -size : size) / 0x8000;
}

/** ITU-T G.711, table 1a. */
function aLaw(byte) {
  const code = byte ^ 0x55;
  const exponent = (code & 0x70) >> 4;
  const mantissa = ((code & 0x0f) << 4) + 8;
  const size = exponent === 0 ? mantissa : mantissa + 0x100 << exponent - 1;
  return (code & 0x80 ? size : -size) / 0x8000;
}

function samples(view, { rate, count, data, width, read }) {
  const length = Math.floor(Math.min(data.size, view.byteLength - data.at) / (width * count));
  if (!(count >= 1 && count <= MOST_CHANNELS && length >= 1 && rate >= 3000 && rate <= 768000)) return null;
  const channels = Array.from({ length: count }, () => new Float32Array(length));
  for (let frame = 0; frame < length; frame += 1) {
    for (let channel = 0; channel < count; channel += 1) {
      channels[channel][frame] = read(view, data.at + (frame * count + channel) * width);
    }
  }
  return { rate, channels };
}
