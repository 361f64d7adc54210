package import HeraldJSON
import HeraldModel

/// Writes a JSON object on one line.
package enum JSONLine {
    /// An object without a line break, with one more member that is already JSON.
    package static func bytes(_ object: JSON.Object, adding member: (name: String, json: [UInt8])? = nil) -> [UInt8] {
        var bytes = JSON.object(object).bytes
        if let member {
            bytes.removeLast()
            if !object.isEmpty { bytes.append(UInt8(ascii: ",")) }
            bytes += Array("\"\(member.name)\":".utf8) + member.json + [UInt8(ascii: "}")]
        }
        return bytes
    }

    /// A payload on one line, byte for byte except line breaks, so that repeated keys stay as they were sent; nil if it is
    /// not JSON.
    ///
    /// Line breaks become spaces, which mean the same: strings contain none (RFC 8259 §7).
    package static func payload(_ payload: [UInt8]) -> [UInt8]? {
        if case .malformed = PayloadScanner.scan(payload) { return nil }
        return payload.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
    }
}
