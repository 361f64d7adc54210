import HeraldModel
import NIOCore

/// Who asks, as far as wrong codes are counted: an IPv4 address, or an IPv6 network of 64 bits, which is what one customer of
/// a provider has.
struct ClientNetwork: Hashable, Sendable {
    private let prefix: UInt64

    init(_ address: SocketAddress?) {
        let bytes: [UInt8] = address?.withSockAddr { Array(UnsafeRawBufferPointer(start: $0, count: $1)) } ?? []
        switch address {
        case .v4 where bytes.count >= 8:
            // sockaddr_in: family, port, address.
            prefix = ClientNetwork.number([0, 0, 0xFF, 0xFF] + bytes[4..<8])
        case .v6 where bytes.count >= 24:
            // sockaddr_in6: family, port, flow, address.
            let address = bytes[8..<24]
            // An IPv4 address in the clothes of IPv6 (RFC 4291 §2.5.5.2).
            let isMapped = address.prefix(10).allSatisfy { $0 == 0 } && address.dropFirst(10).prefix(2) == [0xFF, 0xFF]
            prefix = ClientNetwork.number(Array(isMapped ? address.suffix(8) : address.prefix(8)))
        default:
            prefix = 0
        }
    }

    private static func number(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Slows down who tries codes: each network by itself, and all together.
///
/// Where all together have tried too many, who has none on their account may still try: the honest are not locked out by a
/// crowd, and a secret of 85 bits is not found by trying once each.
struct CodeThrottle: Sendable {
    private var networks: PaceTable<ClientNetwork>
    private var all: PaceTable<Bool>

    init(_ configuration: ActivationConfiguration) {
        networks = PaceTable(
            burst: configuration.wrongCodes,
            interval: configuration.wrongCodeInterval,
            capacity: configuration.remembered
        )
        all = PaceTable(
            burst: configuration.wrongCodesInAll,
            interval: configuration.wrongCodeIntervalInAll,
            capacity: 1
        )
    }

    /// How long a network has to wait before it may try a code; nil if it may now.
    func wait(_ network: ClientNetwork, at now: WallTime) -> Duration? {
        if let wait = networks.wait(network, at: now) { return wait }
        guard let wait = all.wait(true, at: now) else { return nil }
        return networks.remembers(network, at: now) || networks.isFull(at: now) ? wait : nil
    }

    /// Counts a wrong code.
    /// - Returns: Whether it is worth a line in the log; in a flood it is not.
    @discardableResult
    mutating func wasWrong(_ network: ClientNetwork, at now: WallTime) -> Bool {
        let isWorthLine = all.wait(true, at: now) == nil
        networks.take(network, at: now)
        if isWorthLine { all.take(true, at: now) }
        return isWorthLine
    }
}
