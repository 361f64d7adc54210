import NIOCore

/// The connections of one web listener: decides which are served, and which make way for new ones.
///
/// A connection whose client has not sent a whole request, or does not take its answer, makes way at once when places are
/// short. One whose answer is being made or sent never does. So no crowd of slow clients keeps anybody out.
///
/// It knows no clock and no socket; ``WebConnection`` performs what it decides.
struct WebPlaces<Connection> {
    /// The thing that a connection waits for.
    enum Phase: Equatable {
        /// For a request of its client, or for the rest of one, since that moment.
        case asking(NIODeadline)
        /// For an answer of the service.
        case answering
        /// For its client to take bytes of an answer, since that moment.
        case unread(NIODeadline)
    }

    struct Accepted {
        let number: UInt64
        /// The connection that makes way, to be closed at once.
        let evicted: Connection?
    }

    private struct Entry {
        let connection: Connection
        let network: [UInt8]
        var isKept: Bool
        var phase: Phase
    }

    /// Maximum number of connections that may send any request.
    let limit: Int
    /// Number of places beyond ``limit`` for health and metrics.
    let kept: Int
    private var entries: [UInt64: Entry] = [:]
    private var lastNumber: UInt64 = 0

    /// Divides descriptors: an eighth is kept, and some are for connections that make way and are not closed yet.
    /// - Parameter descriptors: Maximum number of open connections, at least 4.
    init(descriptors: Int) {
        kept = max(1, descriptors / 8)
        limit = max(1, descriptors - kept - max(1, descriptors / 16))
    }

    /// Whether new connections displace others, so that each answer ends its connection.
    var isFull: Bool { entries.count >= limit }

    /// Admits a connection from a network: bytes that the addresses of one client share, empty for a Unix socket.
    /// - Returns: nil if there is no place: it must be closed.
    mutating func accept(_ connection: Connection, from network: [UInt8], at now: NIODeadline) -> Accepted? {
        let evicted = isFull ? makeRoom() : nil
        let isKept = isFull
        guard entries.count < limit + kept else { return nil }
        lastNumber += 1
        entries[lastNumber] = Entry(connection: connection, network: network, isKept: isKept, phase: .asking(now))
        return Accepted(number: lastNumber, evicted: evicted)
    }

    mutating func enter(_ phase: Phase, _ number: UInt64) {
        entries[number]?.phase = phase
    }

    /// Whether a connection may have an answer that is neither health nor metrics; a kept one may once there is room.
    mutating func mayServe(_ number: UInt64) -> Bool {
        guard let entry = entries[number], entry.isKept else { return true }
        guard entries.values.count(where: { !$0.isKept }) < limit else { return false }
        entries[number]?.isKept = false
        return true
    }

    /// A connection has closed, or made way.
    mutating func closed(_ number: UInt64) {
        entries[number] = nil
    }

    /// Removes a connection of a network that has the most of those that wait for their client: the one whose client has
    /// left bytes unread for the longest, or else the one that has sent no whole request for the longest.
    private mutating func makeRoom() -> Connection? {
        let idle = entries.filter { $0.value.phase != .answering }
        let networks = Dictionary(grouping: idle, by: \.value.network).values
        let most = networks.map(\.count).max()
        let crowds = networks.filter { $0.count == most }.joined()
        guard let (number, entry) = crowds.min(by: { order($0.value.phase) < order($1.value.phase) }) else {
            return nil
        }
        entries[number] = nil
        return entry.connection
    }

    private func order(_ phase: Phase) -> (Int, NIODeadline) {
        switch phase {
        case .unread(let since): (0, since)
        case .asking(let since): (1, since)
        case .answering: (2, .distantFuture)
        }
    }
}
