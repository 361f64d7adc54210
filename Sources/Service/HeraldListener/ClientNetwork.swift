package import NIOCore

/// A client's IP address; IPv4 as an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2).
package struct ClientAddress: Hashable, Sendable {
    fileprivate let high: UInt64
    fileprivate let low: UInt64

    /// nil for a socket without an IP address.
    package init?(_ address: SocketAddress) {
        // sockaddr_in: family, port, address. sockaddr_in6: family, port, flow, address.
        switch address {
        case .v4:
            let number = address.withSockAddr { start, size in
                size >= 8 ? UnsafeRawPointer(start).loadUnaligned(fromByteOffset: 4, as: UInt32.self) : 0
            }
            self.init(ipv4: UInt32(bigEndian: number))
        case .v6:
            let (high, low) = address.withSockAddr { start, size -> (UInt64, UInt64) in
                guard size >= 24 else { return (0, 0) }
                let start = UnsafeRawPointer(start)
                return (
                    start.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
                    start.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
                )
            }
            self.init(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
        case .unixDomainSocket:
            return nil
        }
    }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    init(ipv4: UInt32) {
        self.init(high: 0, low: 0xFFFF << 32 | UInt64(ipv4))
    }

    var isIPv4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// The network that counts as one client.
    package var network: ClientNetwork { ClientNetwork(prefix: isIPv4 ? low : high) }
}

extension ClientAddress: CustomStringConvertible {
    package var description: String {
        if isIPv4 { return (0..<4).map { "\(UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)))" }.joined(separator: ".") }
        var bytes = ByteBuffer()
        bytes.writeInteger(high)
        bytes.writeInteger(low)
        return (try? SocketAddress(packedIPAddress: bytes, port: 0).ipAddress) ?? "unknown"
    }
}

/// An IPv4 address, or an IPv6 network of 64 bits, the usual size for one customer.
package struct ClientNetwork: Hashable, Sendable {
    fileprivate let prefix: UInt64

    fileprivate init(prefix: UInt64) {
        self.prefix = prefix
    }

    /// Sockets without an IP address are one network.
    package init(_ address: SocketAddress?) {
        self = address.flatMap(ClientAddress.init)?.network ?? ClientNetwork(prefix: 0)
    }
}

/// A range of addresses in CIDR notation (RFC 4632 §3.1): `10.0.0.0/8`, `fd00::/8`, or a single address.
package struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    package let description: String
    private let address: ClientAddress
    /// Bits of the IPv4-mapped or IPv6 address that must match, 0 to 128.
    private let length: Int

    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let socket = try? SocketAddress(ipAddress: String(first), port: 0),
            let address = ClientAddress(socket)
        else { return nil }
        let bits = first.contains(":") ? 128 : 32
        var length = bits
        if parts.count == 2 {
            guard let given = Int(parts[1]), (0...bits).contains(given), parts[1].allSatisfy(\.isNumber) else {
                return nil
            }
            length = given
        }
        description = text
        self.address = address
        self.length = 128 - bits + length
    }

    /// Whether an address in words is in the range.
    package func contains(_ text: String) -> Bool {
        (try? SocketAddress(ipAddress: text, port: 0)).flatMap(ClientAddress.init).map(contains) ?? false
    }

    package func contains(_ other: ClientAddress) -> Bool {
        let high = Self.mask(length)
        let low = Self.mask(length - 64)
        return (address.high ^ other.high) & high == 0 && (address.low ^ other.low) & low == 0
    }

    /// The first bits of 64; a shift by 64 or more is 0.
    private static func mask(_ length: Int) -> UInt64 {
        length >= 64 ? .max : ~(UInt64.max >> max(0, length))
    }
}
