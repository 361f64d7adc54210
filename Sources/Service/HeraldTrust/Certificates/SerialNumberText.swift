import HeraldModel
import X509

/// Serial numbers of certificates, as lower-case hex without leading zero bytes.
enum SerialNumberText {
    /// A new serial number: 16 random bytes, the first between 0x40 and 0x7F, so that it is positive and its length in DER
    /// is always the same (RFC 5280 §4.1.2.2 allows 20).
    static func newSerial() -> Certificate.SerialNumber {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[0] = bytes[0] & 0x3F | 0x40
        return Certificate.SerialNumber(bytes: bytes)
    }

    static func text(_ serial: Certificate.SerialNumber) -> String {
        Hex.text(normal(serial.bytes))
    }

    /// The number's bytes without leading zeros, so that equal numbers are equal bytes.
    static func normal(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.drop { $0 == 0 }
    }
}
