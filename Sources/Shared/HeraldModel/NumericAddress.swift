#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A numeric IP address, with or without a zone (RFC 4007 §11).
package struct NumericAddress: Hashable, Sendable {
    /// 4 or 16 bytes.
    package let bytes: [UInt8]

    /// Reads an address without brackets; nil for a name.
    package init?(_ text: String) {
        let plain = text.contains(":") ? String(text.prefix { $0 != "%" }) : text
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, plain, &bytes) == 1 {
            self.bytes = Array(bytes[..<4])
        } else if inet_pton(AF_INET6, plain, &bytes) == 1 {
            self.bytes = bytes
        } else {
            return nil
        }
    }

    /// Whether it reaches this machine alone.
    package var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// Whether it means all addresses of the machine.
    package var isAny: Bool { bytes.allSatisfy { $0 == 0 } }

    /// The bytes that the addresses of one client share: an IPv4 address, or an IPv6 network of 64 bits, the usual size for one customer.
    package var network: [UInt8] { Array(bytes.prefix(8)) }

    /// The address by which this machine reaches a listener on `host`: loopback for all addresses.
    package static func reachable(_ host: String) -> String {
        guard let address = NumericAddress(host), address.isAny else { return host }
        return address.bytes.count == 4 ? "127.0.0.1" : "::1"
    }
}

/// The network that counts as one guesser: 24 bits of an IPv4 address, 64 of an IPv6 address, the usual sizes for one owner.
package struct GuesserNetwork: Hashable, Sendable {
    private let prefix: [UInt8]

    /// Reads the text of an address; all texts that are not addresses are one network.
    package init(_ address: String) {
        let bytes = NumericAddress(address)?.bytes ?? []
        // An IPv4 client of a dual-stack socket (RFC 4291 §2.5.5.2).
        let isMapped = bytes.count == 16 && bytes[..<10].allSatisfy { $0 == 0 } && bytes[10...11] == [0xFF, 0xFF]
        prefix = isMapped ? Array(bytes[12..<15]) : Array(bytes.prefix(bytes.count == 4 ? 3 : 8))
    }
}
