import NIOCore

/// The connections of one listener from accept to close: decides which come in, and which make way.
///
/// A connection is unknown until its client is authenticated. Unknown connections are limited in number for each network
/// and in age, and at a limit one of them makes way. A known connection never makes way, even if it became known after
/// the decision.
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

    /// A connection that makes way: it must be closed if ``AcceptTable/mustClose(_:)`` still says so.
    struct Eviction {
        let number: UInt64
        let connection: Connection
        /// nil for a connection under notice, whose reason was reported.
        let reason: HandshakeRefusalReason?
    }

    struct Accepted {
        let number: UInt64
        let eviction: Eviction?
    }

    private let limits: Limits
    private var known: [UInt64: Connection] = [:]
    private var unknown: [UInt64: UnknownConnection<Connection>] = [:]
    /// Connections that make way and are not closed yet.
    ///
    /// They do not count, because they are closed at once; ``AcceptPause`` limits their descriptors.
    private var leaving: [UInt64: Connection] = [:]
    /// The unknown connections that are not overdue, oldest first.
    private var ages = UnknownQueue()
    private var stages = UnknownStages()
    private var networks: [ClientNetwork: UnknownStages] = [:]
    private var lastNumber: UInt64 = 0

    init(_ limits: Limits) {
        self.limits = limits
    }

    /// The number of connections; those under notice count until they are closed.
    var count: Int { known.count + unknown.count }

    var unknownCount: Int { unknown.count }

    /// All connections that are not closed.
    var connections: [Connection] {
        Array(known.values) + unknown.values.map(\.connection) + Array(leaving.values)
    }

    // MARK: - Life of a connection

    /// A connection was accepted; `network` is nil if a load balancer will report the client's address.
    /// - Returns: nil if the listener is full of known connections: the new one must be closed.
    mutating func accept(_ connection: Connection, from network: ClientNetwork?, at now: NIODeadline) -> Accepted? {
        var eviction = network.flatMap { makeRoom(in: $0) }
        if eviction == nil, count >= limits.connections {
            guard let number = stages.next(of: unknown) else { return nil }
            eviction = evict(number, for: .displaced)
        }
        lastNumber += 1
        let stage = UnknownStage.waiting
        unknown[lastNumber] = UnknownConnection(
            connection: connection,
            accepted: now,
            network: network,
            stage: stage
        )
        ages.append(lastNumber)
        stages.append(lastNumber, to: stage)
        if let network { networks[network, default: UnknownStages()].append(lastNumber, to: stage) }
        return Accepted(number: lastNumber, eviction: eviction)
    }

    /// A load balancer has reported the network of a connection's client.
    mutating func identify(_ number: UInt64, as network: ClientNetwork) -> Eviction? {
        guard let entry = unknown[number], entry.network == nil else { return nil }
        let eviction = makeRoom(in: network)
        unknown[number]?.network = network
        networks[network, default: UnknownStages()].append(number, to: entry.stage)
        return eviction
    }

    /// The TLS handshake of a connection has had its turn.
    mutating func handshakeBegan(_ number: UInt64) {
        guard unknown[number]?.stage == .waiting else { return }
        move(number, to: .begun)
    }

    /// The client of a connection is authenticated.
    mutating func becameKnown(_ number: UInt64) {
        guard let connection = remove(number)?.connection ?? leaving.removeValue(forKey: number) else { return }
        known[number] = connection
    }

    mutating func closed(_ number: UInt64) {
        guard known.removeValue(forKey: number) == nil, leaving.removeValue(forKey: number) == nil else { return }
        remove(number)
    }

    // MARK: - Connections that must go

    /// Whether an evicted connection must be closed: it is neither known meanwhile nor closed.
    func mustClose(_ number: UInt64) -> Bool { leaving[number] != nil }

    /// The unknown connections that have become too old, each once.
    mutating func overdue(at now: NIODeadline) -> [(number: UInt64, connection: Connection)] {
        var overdue: [(number: UInt64, connection: Connection)] = []
        while let number = ages.first(of: unknown), let entry = unknown[number],
            entry.accepted + limits.unknownAge <= now
        {
            unknown[number]?.isOverdue = true
            ages.noteRemoval(of: unknown)
            overdue.append((number, entry.connection))
        }
        return overdue
    }

    /// Begins the notice of an overdue connection, which counts until it is closed.
    /// - Returns: false if it is known meanwhile, makes way, or is closed.
    mutating func giveNotice(to number: UInt64) -> Bool {
        guard unknown[number] != nil else { return false }
        move(number, to: .notified)
        return true
    }

    /// Whether a connection is under notice, and still unknown.
    func isUnderNotice(_ number: UInt64) -> Bool { unknown[number]?.stage == .notified }

    // MARK: - Queues

    private mutating func makeRoom(in network: ClientNetwork) -> Eviction? {
        guard let count = networks[network]?.count, count >= limits.unknownPerNetwork,
            let number = networks[network]?.next(of: unknown)
        else { return nil }
        return evict(number, for: .network)
    }

    private mutating func evict(_ number: UInt64, for reason: HandshakeRefusalReason) -> Eviction? {
        guard let entry = remove(number) else { return nil }
        leaving[number] = entry.connection
        return Eviction(
            number: number,
            connection: entry.connection,
            reason: entry.stage == .notified ? nil : reason
        )
    }

    private mutating func move(_ number: UInt64, to stage: UnknownStage) {
        guard let entry = unknown[number], entry.stage != stage else { return }
        unknown[number]?.stage = stage
        stages.noteRemoval(from: entry.stage, of: unknown)
        stages.append(number, to: stage)
        guard let network = entry.network else { return }
        networks[network]?.noteRemoval(from: entry.stage, of: unknown)
        networks[network]?.append(number, to: stage)
    }

    @discardableResult
    private mutating func remove(_ number: UInt64) -> UnknownConnection<Connection>? {
        guard let entry = unknown.removeValue(forKey: number) else { return nil }
        if !entry.isOverdue { ages.noteRemoval(of: unknown) }
        stages.noteRemoval(from: entry.stage, of: unknown)
        guard let network = entry.network else { return entry }
        networks[network]?.noteRemoval(from: entry.stage, of: unknown)
        if networks[network]?.count == 0 { networks[network] = nil }
        return entry
    }
}
