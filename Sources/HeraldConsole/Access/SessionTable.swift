import HeraldModel

/// The sessions of browsers, in memory: a restart ends them.
struct SessionTable: Sendable {
    struct Session: Hashable, Sendable {
        let id: String
        let member: ConsoleMember
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
    /// One more ends the one that was idle longest.
    static let maximum = 256

    private var sessions: [SecretDigest: Session] = [:]

    /// Opens a session, whose cookie has the digest.
    mutating func open(
        _ digest: SecretDigest,
        id: String,
        as member: ConsoleMember,
        address: String,
        at now: WallTime
    ) -> Session {
        dropEnded(at: now)
        if sessions.count >= Self.maximum, let oldest = sessions.min(by: { $0.value.used < $1.value.used }) {
            sessions[oldest.key] = nil
        }
        let session = Session(
            id: id,
            member: member,
            address: address,
            opened: now,
            ends: min(now + Self.longestLife, member.ends ?? now + Self.longestLife),
            used: now
        )
        sessions[digest] = session
        return session
    }

    /// The session of a cookie, whose idle time begins again; nil if there is none.
    mutating func session(_ digest: SecretDigest, at now: WallTime, isUse: Bool = true) -> Session? {
        guard var session = sessions[digest] else { return nil }
        guard !hasEnded(session, at: now) else {
            sessions[digest] = nil
            return nil
        }
        if isUse {
            session.used = now
            sessions[digest] = session
        }
        return session
    }

    /// All sessions, the newest first.
    mutating func all(at now: WallTime) -> [Session] {
        dropEnded(at: now)
        return sessions.values.sorted { ($0.opened, $0.id) > ($1.opened, $1.id) }
    }

    /// Ends the sessions that match.
    /// - Returns: How many there were.
    @discardableResult
    mutating func close(_ matches: (Session) -> Bool) -> Int {
        let before = sessions.count
        sessions = sessions.filter { !matches($0.value) }
        return before - sessions.count
    }

    private mutating func dropEnded(at now: WallTime) {
        sessions = sessions.filter { !hasEnded($0.value, at: now) }
    }

    private func hasEnded(_ session: Session, at now: WallTime) -> Bool {
        now >= session.ends || now >= session.used + Self.longestIdle
    }
}
