import HeraldModel

/// The sessions of browsers, in memory: a restart ends them.
struct SessionTable: Sendable {
    struct Session: Hashable, Sendable {
        let id: String
        let member: ConsoleMember
        /// Digest of the secret that the page keeps, and sends beside the cookie.
        let page: SecretDigest
        /// IP address that opened it.
        let address: String
        let opened: WallTime
        /// At the latest.
        let ends: WallTime
        var used: WallTime
    }

    /// Without a request.
    static let longestIdle = Duration.seconds(12 * 3600)
    static let longestLife = Duration.seconds(7 * 86_400)
    /// Sessions of one member; a further one ends the session that was idle longest.
    static let maximumOfMember = 16
    static let maximum = 256

    private var sessions: [SecretDigest: Session] = [:]

    /// Adds a session, whose cookie has the digest.
    ///
    /// In a full table the member with the most sessions loses the one that was idle longest. Nobody loses one to a lesser role.
    /// - Returns: Whether there was room.
    mutating func open(_ digest: SecretDigest, _ session: Session) -> Bool {
        let groups = Dictionary(grouping: sessions) { $0.value.member }
        let own = groups[session.member] ?? []
        if own.count >= Self.maximumOfMember || sessions.count >= Self.maximum {
            // Of the least role that has a member with several, the one with the most.
            let others = groups.filter { $0.key.role <= session.member.role && $0.value.count > 1 }
            let most = others.max { ($1.key.role, $0.value.count) < ($0.key.role, $1.value.count) }?.value
            let crowd = own.count >= Self.maximumOfMember ? own : most ?? []
            guard let idle = crowd.min(by: { $0.value.used < $1.value.used }) else { return false }
            sessions[idle.key] = nil
        }
        sessions[digest] = session
        return true
    }

    /// The session of a cookie; nil if there is none.
    subscript(_ digest: SecretDigest) -> Session? { sessions[digest] }

    /// The session of an identifier; nil if there is none.
    func session(_ id: String) -> Session? { sessions.values.first { $0.id == id } }

    /// Begins the idle time of a session anew.
    mutating func use(_ digest: SecretDigest, at now: WallTime) { sessions[digest]?.used = now }

    /// All sessions, the newest first.
    var all: [Session] { sessions.values.sorted { ($0.opened, $0.id) > ($1.opened, $1.id) } }

    /// Ends the sessions that match.
    /// - Returns: How many there were.
    @discardableResult
    mutating func close(_ matches: (Session) -> Bool) -> Int {
        let before = sessions.count
        sessions = sessions.filter { !matches($0.value) }
        return before - sessions.count
    }
}

extension SessionTable.Session {
    /// Whether it is too old, or was idle for too long.
    func hasEnded(at now: WallTime) -> Bool {
        now >= ends || now >= used + SessionTable.longestIdle
    }
}
