import Foundation
package import HeraldModel
import SwiftASN1
package import X509

/// A certificate revocation list (RFC 5280 §5) of one authority: complete, of version 1 or 2, its signature checked.
///
/// What it covers must be all that its authority ever signed. A list that is indirect, a delta, or limited to a part is
/// refused, because a reader that takes it for the whole lets revoked peers in.
package struct RevocationList: Sendable {
    /// Why a list cannot be used.
    package enum Flaw: Error, Hashable, Sendable {
        /// Not the DER of a list.
        case malformed
        /// Signed with an algorithm that we do not read, or one name for it inside and another outside.
        case algorithm
        /// The issuer is not the expected authority.
        case issuer
        /// The signature is not the authority's.
        case signature
        /// A delta, an indirect list, or one limited to some certificates.
        case partial
        /// A critical extension that we do not know.
        case criticalExtension
    }

    package let thisUpdate: WallTime
    /// When a newer one is due at the latest; nil if the list does not say.
    package let nextUpdate: WallTime?
    /// Grows with each list of an authority; nil if the list has none.
    package let number: RevocationListNumber?
    /// Revoked serial numbers, without leading zeros, and since when.
    private let entries: [ArraySlice<UInt8>: WallTime]

    init(
        thisUpdate: WallTime,
        nextUpdate: WallTime?,
        number: RevocationListNumber?,
        entries: [ArraySlice<UInt8>: WallTime]
    ) {
        self.thisUpdate = thisUpdate
        self.nextUpdate = nextUpdate
        self.number = number
        self.entries = entries
    }

    package var count: Int { entries.count }

    /// Since when a certificate of the list's authority is revoked; nil if it is not.
    package func revoked(_ serial: Certificate.SerialNumber) -> WallTime? {
        entries[SerialText.normal(serial.bytes)]
    }

    /// Since when a serial number (lower-case hex, as ``DeviceIdentity/serial`` has it) is revoked; nil if it is not.
    package func revoked(serial: String) -> WallTime? {
        Hex.bytes(serial).flatMap { entries[SerialText.normal($0[...])] }
    }

    /// Whether the list may take another one's place: an older list must never undo a revocation.
    func mayFollow(_ former: RevocationList) -> Bool {
        if let number, let earlier = former.number, number != earlier { return number > earlier }
        return thisUpdate >= former.thisUpdate && (number != nil || former.number == nil)
    }
}

/// The number of a revocation list: a whole number of up to 20 bytes (RFC 5280 §5.2.3).
package struct RevocationListNumber: Hashable, Sendable, Comparable {
    static let maximumBytes = 20

    /// Big-endian, without leading zeros; empty is zero.
    let bytes: [UInt8]

    /// From big-endian bytes, the library having refused negative numbers; nil for more than ``maximumBytes``.
    init?(magnitude: ArraySlice<UInt8>) {
        bytes = Array(SerialText.normal(magnitude))
        guard bytes.count <= Self.maximumBytes else { return nil }
    }

    package init(_ number: UInt64) {
        bytes = Array(SerialText.normal(withUnsafeBytes(of: number.bigEndian) { Array($0) }[...]))
    }

    /// The next number.
    var successor: RevocationListNumber {
        var sum = bytes
        for index in sum.indices.reversed() {
            sum[index] &+= 1
            if sum[index] != 0 { return RevocationListNumber(bytes: sum) }
        }
        return RevocationListNumber(bytes: [1] + sum)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    package static func < (left: RevocationListNumber, right: RevocationListNumber) -> Bool {
        left.bytes.count == right.bytes.count
            ? left.bytes.lexicographicallyPrecedes(right.bytes) : left.bytes.count < right.bytes.count
    }
}
