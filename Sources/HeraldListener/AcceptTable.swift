import NIOCore

/// The connections of one listener from accept to close: decides which come in, and which make way.
///
/// A connection is unknown until its client is authenticated. Unknown connections are limited in number for each network
/// and in age, and at a limit the oldest of them makes way. A known connection never makes way.
///
/// It knows no clock and no socket; ``ConnectionControl`` performs what it decides.
struct AcceptTable<Connection> {
    struct Limits {
        /// Maximum number of connections, known and unknown.
        var connections: Int
        /// Maximum number of unknown connections of one network.
        var unknownPerNetwork: Int
        /// Maximum age of an unknown connection.
        var unknownAge: TimeAmount
    }

    /// A connection that must be closed, and the reason.
    struct Eviction {
        let connection: Connection
        let reason: HandshakeRefusalReason
    }

    struct Accepted {
        let number: UInt64
        let eviction: Eviction?
    }

    private struct Unknown {
        let connection: Connection
        let accepted: NIODeadline
        /// nil until a load balancer has reported the client's address.
        var network: ClientNetwork?
    }

    /// Numbers of unknown connections, oldest first.
    ///
    /// A number that leaves stays in the array until it comes to the front, or until most are of that kind.
    private struct Queue {
        private var numbers: [UInt64] = []
        private var head = 0
        private(set) var count = 0

        mutating func append(_ number: UInt64) {
            numbers.append(number)
            count += 1
        }

        mutating func first(of present: [UInt64: Unknown]) -> UInt64? {
            while head < numbers.count {
                if present[numbers[head]] != nil { return numbers[head] }
                head += 1
            }
            return nil
        }

        /// One number has left the dictionary.
        mutating func noteRemoval(from present: [UInt64: Unknown]) {
            count -= 1
            guard numbers.count > 2 * count + 64 else { return }
            numbers = numbers[head...].filter { present[$0] != nil }
            head = 0
        }
    }

    private let limits: Limits
    private var known: [UInt64: Connection] = [:]
    private var unknown: [UInt64: Unknown] = [:]
    private var queue = Queue()
    private var networks: [ClientNetwork: Queue] = [:]
    private var lastNumber: UInt64 = 0

    init(_ limits: Limits) {
        self.limits = limits
    }

    var count: Int { known.count + unknown.count }

    var unknownCount: Int { unknown.count }

    var connections: [Connection] { Array(known.values) + unknown.values.map(\.connection) }

    /// A connection was accepted; `network` is nil if a load balancer will report the client's address.
    /// - Returns: nil if the listener is full of known connections: the new one must be closed.
    mutating func accept(_ connection: Connection, from network: ClientNetwork?, at now: NIODeadline) -> Accepted? {
        var eviction = network.flatMap { makeRoom(in: $0) }
        if eviction == nil, count >= limits.connections {
            guard let oldest = queue.first(of: unknown), let removed = remove(oldest) else { return nil }
            eviction = Eviction(connection: removed.connection, reason: .displaced)
        }
        lastNumber += 1
        unknown[lastNumber] = Unknown(connection: connection, accepted: now, network: network)
        queue.append(lastNumber)
        if let network { networks[network, default: Queue()].append(lastNumber) }
        return Accepted(number: lastNumber, eviction: eviction)
    }

    /// A load balancer has reported the network of a connection's client.
    mutating func identify(_ number: UInt64, as network: ClientNetwork) -> Eviction? {
        guard unknown[number]?.network == nil, unknown[number] != nil else { return nil }
        let eviction = makeRoom(in: network)
        unknown[number]?.network = network
        networks[network, default: Queue()].append(number)
        return eviction
    }

    /// The client of a connection is authenticated.
    mutating func becameKnown(_ number: UInt64) {
        // It may have been evicted, and not be closed yet.
        guard let entry = remove(number) else { return }
        known[number] = entry.connection
    }

    mutating func closed(_ number: UInt64) {
        if known.removeValue(forKey: number) == nil { remove(number) }
    }

    /// Removes the unknown connections that are too old.
    mutating func overdue(at now: NIODeadline) -> [Connection] {
        var overdue: [Connection] = []
        while let number = queue.first(of: unknown), let entry = unknown[number],
            entry.accepted + limits.unknownAge <= now
        {
            remove(number)
            overdue.append(entry.connection)
        }
        return overdue
    }

    private mutating func makeRoom(in network: ClientNetwork) -> Eviction? {
        guard let count = networks[network]?.count, count >= limits.unknownPerNetwork,
            let oldest = networks[network]?.first(of: unknown), let removed = remove(oldest)
        else { return nil }
        return Eviction(connection: removed.connection, reason: .network)
    }

    @discardableResult
    private mutating func remove(_ number: UInt64) -> Unknown? {
        guard let entry = unknown.removeValue(forKey: number) else { return nil }
        queue.noteRemoval(from: unknown)
        guard let network = entry.network else { return entry }
        networks[network]?.noteRemoval(from: unknown)
        if networks[network]?.count == 0 { networks[network] = nil }
        return entry
    }
}
