import HeraldWeb
import Synchronization

/// Divides the requests that last, each of which holds a connection, among the callers.
final class CallerShares: Sendable {
    /// Requests in all.
    private let limit: Int
    /// Requests of one caller, with all its sessions.
    private let limitOfCaller: Int
    private let what: String
    private let open = Mutex<[ConsoleMember: Int]>([:])

    /// - Parameters:
    ///   - limit: Requests at a time; the last quarter is for admins.
    ///   - share: The part of them that one caller may have: a half, a quarter.
    ///   - what: The requests in words: `pages watch this service`.
    init(limit: Int, share: Int, what: String) {
        self.limit = limit
        limitOfCaller = max(2, limit / share)
        self.what = what
    }

    /// Takes a place.
    /// - Returns: Gives the place back; to be called once.
    /// - Throws: ``WebRefusal`` if the caller has its share, or all places are taken.
    func take(_ caller: ConsoleCaller?) throws -> @Sendable () -> Void {
        guard let caller else { throw ConsoleGate.isUnknown }
        let member = caller.member
        try open.withLock { open in
            let own = open[member] ?? 0
            guard own < limitOfCaller else {
                throw WebRefusal(429, "\(own) \(what) for \(member.name) already: close one", retryAfter: 1)
            }
            let most = member.role == .admin ? limit : limit - limit / 4
            guard open.values.reduce(0, +) < most else {
                throw WebRefusal(503, "\(most) \(what) already: close one", retryAfter: 1)
            }
            open[member] = own + 1
        }
        return { [self] in
            open.withLock { $0[member] = $0[member].flatMap { $0 > 1 ? $0 - 1 : nil } }
        }
    }
}
