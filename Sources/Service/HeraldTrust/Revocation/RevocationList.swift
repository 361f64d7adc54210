import Foundation
package import HeraldModel
package import X509

/// A complete certificate revocation list (RFC 5280 §5) of one authority, version 1 or 2, with a checked signature.
///
/// An indirect, delta or partial list is refused, because revoked peers may be missing from it.
package struct RevocationList: Sendable {
    /// The reason why a list cannot be used.
    package enum ParseError: Error, Hashable, Sendable {
        /// Not the DER of a list.
        case malformed
        /// An unsupported signature algorithm, or different ones inside and outside of the signed part.
        case algorithm
        /// The issuer is not the expected authority.
        case issuer
        /// The signature is not the authority's.
        case signature
        /// A delta, an indirect list, or one limited to some certificates.
        case partial
        /// An unknown critical extension.
        case criticalExtension
    }

    package let thisUpdate: WallTime
    /// Time at which a newer list is due; nil if the list has none.
    package let nextUpdate: WallTime?
    /// The list number, which rises with each list of an authority; nil if the list has none.
    package let number: RevocationListNumber?
    /// Revoked serial numbers, without leading zeros, with the time of revocation.
    let entries: [ArraySlice<UInt8>: WallTime]
}

extension RevocationList {
    /// Parses a list (DER) and checks that the authority signed it.
    package init(der: [UInt8], authority: CertificateAuthority) throws(ParseError) {
        self = try RevocationListParser.parse(der: der, authority: authority)
    }

    package var count: Int { entries.count }

    /// Time of a certificate's revocation; nil if it is not revoked.
    package func revoked(_ serial: Certificate.SerialNumber) -> WallTime? {
        entries[SerialNumberText.normal(serial.bytes)]
    }

    /// Time of revocation of a serial number in lower-case hex; nil if it is not revoked.
    package func revoked(serial: String) -> WallTime? {
        Hex.bytes(serial).flatMap { entries[SerialNumberText.normal($0[...])] }
    }

    /// Whether the list may replace another one: an older list must never undo a revocation.
    func mayFollow(_ former: RevocationList) -> Bool {
        if let number, let earlier = former.number, number != earlier { return number > earlier }
        return thisUpdate >= former.thisUpdate && (number != nil || former.number == nil)
    }
}

/// The number of a revocation list: an integer of up to 20 bytes (RFC 5280 §5.2.3).
package struct RevocationListNumber: Hashable, Sendable, Comparable {
    static let maximumBytes = 20

    /// Big-endian, without leading zeros; empty is zero.
    let bytes: [UInt8]

    /// Makes a number from big-endian bytes; nil if it is too long.
    ///
    /// The library refuses negative numbers.
    init?(magnitude: ArraySlice<UInt8>) {
        bytes = Array(SerialNumberText.normal(magnitude))
        guard bytes.count <= Self.maximumBytes else { return nil }
    }

    package init(_ number: UInt64) {
        bytes = Array(SerialNumberText.normal(withUnsafeBytes(of: number.bigEndian) { Array($0) }[...]))
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
