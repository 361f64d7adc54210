/// Order in which servers are tried, and the pauses between rounds.
///
/// It has neither clock nor random source.
struct ServerPool {
    struct Server: Hashable {
        let address: NATSServerAddress
        /// Name to expect in the certificate, if it is not the address's host.
        var tlsName: String?
    }

    enum Step: Hashable {
        case connect(Server)
        /// All servers failed; the next round begins after the pause.
        case pause(Duration)
    }

    private let configured: [Server]
    private let limits: NATSLimits
    private var announced: [Server] = []
    /// Servers of this round that are still to be tried, the next one last.
    private var round: [Server]
    private var isRoundOver = false
    /// Server that was connected last: a new round tries it last.
    private var last: Server?
    private var pause: Duration

    init(_ addresses: [NATSServerAddress], limits: NATSLimits) {
        configured = addresses.map { Server(address: $0) }
        self.limits = limits
        round = []
        pause = limits.shortestPause
        isRoundOver = false
    }

    /// Number of servers that are known.
    var count: Int { configured.count + announced.count }

    /// The next step.
    /// - Parameter random: At least 0 and below 1; chooses the order of a round, and shortens a pause by up to a half.
    /// - Returns: A server, or a pause before the next call.
    mutating func next(random: () -> Double) -> Step {
        if round.isEmpty {
            if isRoundOver {
                isRoundOver = false
                defer { pause = min(pause * 2, limits.longestPause) }
                return .pause(pause * (1 - random() / 2))
            }
            round = configured + announced
            for place in round.indices.dropFirst() {
                round.swapAt(place, min(place, Int(random() * Double(place + 1))))
            }
            if let last, let place = round.firstIndex(of: last) { round.swapAt(0, place) }
        }
        guard let server = round.popLast() else { return .pause(limits.longestPause) }
        isRoundOver = round.isEmpty
        return .connect(server)
    }

    /// A server has accepted the connection.
    mutating func connected(to server: Server) {
        last = server
    }

    /// The connection has ended.
    /// - Parameter wasStable: Whether it had lasted: the next attempt then comes at once, and pauses begin small.
    mutating func disconnected(wasStable: Bool) {
        guard wasStable else { return }
        round = []
        isRoundOver = false
        pause = limits.shortestPause
    }

    /// Takes the list of servers that one of them announces; its former list is forgotten.
    mutating func announce(_ texts: [String], by server: Server) {
        let known = Set(configured.map { Place($0.address) })
        var seen: Set<Place> = []
        announced = texts.prefix(limits.announcedServers).compactMap { text in
            guard let address = try? NATSServerAddress(text), !known.contains(Place(address)),
                seen.insert(Place(address)).inserted
            else { return nil }
            let isNumeric =
                address.host.utf8.allSatisfy { (48...57).contains($0) || $0 == 0x2E } || address.host.contains(":")
            return Server(
                address: NATSServerAddress(
                    host: address.host,
                    port: address.port,
                    requiresTLS: server.address.requiresTLS
                ),
                // Certificates name hosts, and servers announce numbers.
                tlsName: isNumeric ? server.tlsName ?? server.address.host : nil
            )
        }
    }

    /// Host and port, with which two addresses are the same server.
    private struct Place: Hashable {
        let host: String
        let port: Int

        init(_ address: NATSServerAddress) {
            host = address.host
            port = address.port
        }
    }
}
