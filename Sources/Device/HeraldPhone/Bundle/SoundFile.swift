/// The properties of a sound file, from its header: whether the system plays it.
public struct SoundFile: Hashable, Sendable {
    /// The number of bytes that are read.
    public static let prefixBytes = 64 * 1024
    /// The longest sound that is played, in seconds.
    public static let maximumSeconds = 30.0

    /// A reason why the file is not played.
    public enum Fault: Hashable, Sendable {
        /// The content is not AIFF, WAV or CAF.
        case container
        /// The samples are compressed otherwise than with MA4, µ-law or a-law.
        case encoding(String)
        /// It is too long, in seconds.
        case tooLong(Double)
    }

    /// The reason why the default sound is played instead; nil if the file is played.
    ///
    /// An empty file is a placeholder and counts as playable.
    public let fault: Fault?

    /// Reads the first bytes of a file.
    public init(prefix: [UInt8]) {
        guard !prefix.isEmpty else {
            fault = nil
            return
        }
        let head = SoundHead(bytes: prefix)
        guard let (encoding, seconds) = head.aiff ?? head.wave ?? head.caf else {
            fault = .container
            return
        }
        if let encoding {
            fault = .encoding(encoding)
        } else if let seconds, seconds > Self.maximumSeconds {
            fault = .tooLong(seconds)
        } else {
            fault = nil
        }
    }
}

extension SoundFile.Fault: CustomStringConvertible {
    /// The fault, as the end of a sentence that begins with the file name.
    public var description: String {
        switch self {
        case .container: "is neither AIFF, WAV nor CAF by its content"
        case .encoding(let encoding): "is encoded as \(encoding): it must be linear PCM, MA4, µ-law or a-law"
        case .tooLong(let seconds):
            "lasts \(Int(min(seconds, 1e9))) s: sounds of more than 30 s are not played"
        }
    }
}

/// The headers of the three formats; nil for another format.
private struct SoundHead {
    /// The encoding, if it is not played, and the duration, if it is known.
    typealias Content = (foreignEncoding: String?, seconds: Double?)

    let bytes: [UInt8]

    /// AIFF and AIFF-C: big-endian chunks; COMM has everything.
    var aiff: Content? {
        guard text(0) == "FORM", text(8) == "AIFF" || text(8) == "AIFC" else { return nil }
        guard let chunk = chunk("COMM", isBigEndian: true), let frames = number(chunk + 2, 4),
            let exponent = number(chunk + 8, 2), let mantissa = number(chunk + 10, 4)
        else { return (nil, nil) }
        // The rate is a float of 80 bits. It is positive, and the upper 32 bits of the mantissa are exact enough.
        let rate = Double(mantissa) * power(of: Int(exponent & 0x7FFF) - 16383 - 31)
        let seconds = rate > 0 ? Double(frames) / rate : nil
        guard text(8) == "AIFC", let encoding = text(chunk + 18) else { return (nil, seconds) }
        let known = [
            "NONE", "sowt", "twos", "ima4", "ulaw", "alaw", "ULAW", "ALAW", "in24", "in32", "fl32", "fl64", "FL32",
        ]
        // IMA counts packets of 64 frames.
        return (known.contains(encoding) ? nil : encoding, seconds.map { encoding == "ima4" ? $0 * 64 : $0 })
    }

    /// WAV: little-endian chunks; `fmt ` has the bytes per second, `data` the number of bytes.
    var wave: Content? {
        guard text(0) == "RIFF", text(8) == "WAVE" else { return nil }
        guard let format = chunk("fmt ", isBigEndian: false), let code = number(format, 2, isBigEndian: false),
            let rate = number(format + 8, 4, isBigEndian: false)
        else { return (nil, nil) }
        let data = chunk("data", isBigEndian: false).flatMap { number($0 - 4, 4, isBigEndian: false) }
        let seconds = rate > 0 ? data.map { Double($0) / Double(rate) } : nil
        // PCM, float, a-law, µ-law, IMA, and "extensible".
        return ([1, 3, 6, 7, 0x11, 0xFFFE].contains(code) ? nil : "WAV format \(code)", seconds)
    }

    /// CAF: the first chunk is `desc`; `data` has a size of 64 bits.
    var caf: Content? {
        guard text(0) == "caff", text(8) == "desc" else { return nil }
        guard let encoding = text(28), let high = number(20, 4), let low = number(24, 4),
            let packetBytes = number(36, 4), let packetFrames = number(40, 4)
        else { return (nil, nil) }
        let rate = Double(bitPattern: high << 32 | low)
        var seconds: Double?
        if let size = cafData, packetBytes > 0, packetFrames > 0, rate > 0 {
            seconds = Double(size) / Double(packetBytes) * Double(packetFrames) / rate
        }
        return (["lpcm", "ima4", "ulaw", "alaw"].contains(encoding) ? nil : encoding, seconds)
    }

    private var cafData: UInt64? {
        var position = 8
        while let name = text(position), let high = number(position + 4, 4), let low = number(position + 8, 4) {
            let size = high << 32 | low
            if name == "data" { return size == .max ? nil : size }
            guard size < UInt64(bytes.count) else { return nil }
            position += 12 + Int(size)
        }
        return nil
    }

    /// The start of a chunk's content.
    private func chunk(_ wanted: String, isBigEndian: Bool) -> Int? {
        var position = 12
        while let name = text(position), let size = number(position + 4, 4, isBigEndian: isBigEndian) {
            if name == wanted { return position + 8 }
            position += 8 + Int(size) + Int(size & 1)
        }
        return nil
    }

    private func text(_ position: Int) -> String? {
        guard position + 4 <= bytes.count else { return nil }
        return String(decoding: bytes[position..<(position + 4)], as: UTF8.self)
    }

    private func number(_ position: Int, _ size: Int, isBigEndian: Bool = true) -> UInt64? {
        guard position >= 0, position + size <= bytes.count else { return nil }
        let raw = bytes[position..<(position + size)]
        let ordered = isBigEndian ? Array(raw) : raw.reversed()
        return ordered.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func power(of exponent: Int) -> Double {
        guard (-1000...1000).contains(exponent) else { return 0 }
        return Double(sign: .plus, exponent: exponent, significand: 1)
    }
}
