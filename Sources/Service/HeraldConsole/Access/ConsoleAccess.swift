package import HeraldModel
import HeraldWeb
import Hummingbird
import Synchronization

/// Knows who may use the console: one-time codes, sessions, and tokens; limits wrong attempts.
package final class ConsoleAccess: Sendable {
    /// Writes the file of the named tokens.
    package typealias Save = @Sendable (ConsoleTokens) throws -> Void

    private struct State: Sendable {
        var codes = LoginCodes()
        var sessions = SessionTable()
        var tokens: ConsoleTokens
        var throttle = KeyedRateLimiter<GuesserNetwork>(burst: 10, interval: .seconds(6), capacity: 4096)

        /// Whether nobody has ended something, nor anything that it stands on.
        func stands(_ ground: ConsoleGround, at now: WallTime) -> Bool {
            switch ground {
            case .process: true
            case .token(let id): tokens.has(id, at: now)
            case .session(let id): sessions.session(id).map { stands($0, at: now) } ?? false
            }
        }

        func stands(_ session: SessionTable.Session, at now: WallTime) -> Bool {
            !session.hasEnded(at: now) && stands(session.member.ground, at: now)
        }

        /// The named token on which something stands; nil if it stands on none.
        func token(below ground: ConsoleGround) -> ConsoleToken? {
            switch ground {
            case .process: nil
            case .token(let id): tokens.tokens.first { $0.id == id }
            case .session(let id): sessions.session(id).flatMap { token(below: $0.member.ground) }
            }
        }

        /// Drops the sessions that have ended, and then those that stood on them.
        mutating func dropEnded(at now: WallTime) {
            let before = self
            sessions.close { !before.stands($0, at: now) }
        }
    }

    /// Whether the port itself speaks TLS.
    let isOverTLS: Bool
    private let adminToken: SecretDigest?
    private let clock: any WallClock
    private let state: Mutex<State>
    private let book: TokenBook

    /// The admin's token is that in `run/admin.token`; an empty one admits nobody.
    ///
    /// The clock is the machine's, which nobody moves for a test. `save` writes the file of the named tokens.
    package init(
        adminToken: String,
        tokens: ConsoleTokens = ConsoleTokens(),
        isOverTLS: Bool = false,
        clock: any WallClock,
        save: @escaping Save = { _ in }
    ) {
        self.adminToken = adminToken.isEmpty ? nil : SecretDigest(adminToken)
        self.clock = clock
        self.isOverTLS = isOverTLS
        state = Mutex(State(tokens: tokens))
        book = TokenBook(tokens, save: save)
    }

    // MARK: - Callers

    /// The caller of a request at the port; nil if it shows no valid proof.
    /// - Throws: ``AdminError`` for too many wrong tokens.
    func caller(of request: Request, from address: String) throws -> ConsoleCaller? {
        if let secret = BearerToken<ConsoleContext>.secret(in: request.headers[.authorization]) {
            let member = try guarded(address) { state, now in holder(of: SecretDigest(secret), state, at: now) }
            return member.map { ConsoleCaller(member: $0, ground: $0.ground, proof: .token) }
        }
        return session(of: request).map { ConsoleCaller(member: $0.member, ground: .session($0.id), proof: .session) }
    }

    /// The session of a request, whose idle time begins anew.
    ///
    /// The cookie reaches every server on the same host. So it counts only with the secret that the page keeps, which only a
    /// page of the same port can read.
    private func session(of request: Request) -> SessionTable.Session? {
        let page = SecretDigest(SessionCookie.pageSecret(in: request))
        let cookies = SessionCookie.secrets(in: request, isOverTLS: isOverTLS).map(SecretDigest.init)
        let now = clock.now()
        return state.withLock { state in
            for cookie in cookies {
                guard let session = state.sessions[cookie], session.page == page, state.stands(session, at: now) else {
                    continue
                }
                state.sessions.use(cookie, at: now)
                return session
            }
            return nil
        }
    }

    /// Whether a caller who was let in would be let in again.
    func isStillIn(_ caller: ConsoleCaller) -> Bool {
        state.withLock { $0.stands(caller.ground, at: clock.now()) }
    }

    /// The holder of a token; nil if it is wrong.
    private func holder(of digest: SecretDigest, _ state: State, at now: WallTime) -> ConsoleMember? {
        if digest == adminToken { return ConsoleMember(name: "admin.token", role: .admin) }
        return state.tokens.token(digest, at: now)?.member
    }

    /// Counts wrong secrets of a network.
    ///
    /// Secrets have 128 bits or more, so the limit need not stop guesses: it keeps them out of the audit. A right secret counts
    /// at the limit too, so that nobody shuts out their neighbours.
    private func guarded<Value>(_ address: String, _ check: (inout State, WallTime) throws -> Value?) throws -> Value? {
        let now = clock.now()
        return try state.withLock { state in
            if let value = try check(&state, now) { return value }
            let network = GuesserNetwork(address)
            if let wait = state.throttle.wait(network, at: now) {
                let seconds = Int(wait.components.seconds) + 1
                let words = "too many wrong codes or tokens from the network of \(address): try again in \(seconds) s"
                throw AdminError(.tooMany, words, retryAfter: seconds)
            }
            state.throttle.take(network, at: now)
            return nil
        }
    }

    // MARK: - Sessions

    /// Makes the code of a one-time link, which ends with the caller's token or session.
    /// - Throws: ``AdminError`` if the caller has been shut out meanwhile, or has too many open links.
    func makeCode(name: String, role: ConsoleRole, by caller: ConsoleCaller) throws -> (code: String, expires: WallTime)
    {
        let code = ConsoleSecret.make(bytes: 16)
        let now = clock.now()
        let member = ConsoleMember(name: name, role: role, ground: caller.ground, ends: caller.member.ends)
        let isAdded = state.withLock { $0.codes.add(SecretDigest(code), for: member, at: now) }
        guard isAdded else {
            let seconds = Int(LoginCodes.lifetime.components.seconds)
            let words = "\(LoginCodes.maximum) links of yours wait to be opened: try again in \(seconds) s"
            throw AdminError(.tooMany, words, retryAfter: seconds)
        }
        return (code, now + LoginCodes.lifetime)
    }

    /// Makes the code of the link that `--demo` prints: for an admin, and longer valid, because nobody has asked for it.
    package func makeDemoCode() -> String {
        let code = ConsoleSecret.make(bytes: 16)
        let demo = ConsoleMember(name: "demo", role: .admin)
        _ = state.withLock { $0.codes.add(SecretDigest(code), for: demo, at: clock.now(), lifetime: .seconds(600)) }
        return code
    }

    /// A new session with its secrets, which are known only now.
    struct NewSession {
        let session: SessionTable.Session
        let cookie: String
        /// The secret that the page keeps.
        let page: String
    }

    /// Opens a session for a code or token.
    /// - Throws: ``AdminError`` if it is wrong, or there are too many sessions.
    func open(_ proof: SessionRequest, from address: String) throws -> NewSession {
        let (cookie, page) = (ConsoleSecret.make(bytes: 32), ConsoleSecret.make(bytes: 32))
        let session: SessionTable.Session? = try guarded(address) { state, now in
            let digest = SecretDigest(proof.code ?? proof.token ?? "")
            let member =
                proof.code == nil ? holder(of: digest, state, at: now) : state.codes.redeem(digest, at: now)
            guard let member, state.stands(member.ground, at: now) else { return nil }
            let end = now + SessionTable.longestLife
            let session = SessionTable.Session(
                id: ConsoleSecret.makeID(),
                member: member,
                page: SecretDigest(page),
                address: address,
                opened: now,
                ends: min(end, member.ends ?? end),
                used: now
            )
            state.dropEnded(at: now)
            guard state.sessions.open(SecretDigest(cookie), session) else {
                throw AdminError(.tooMany, "\(SessionTable.maximum) sessions are open: an admin can end some")
            }
            return session
        }
        guard let session else {
            throw AdminError(
                .unauthorized,
                proof.code != nil
                    ? "this link was used, or is too old: make a new one with `herald console`"
                    : "this token is unknown or has expired: see `herald console tokens`"
            )
        }
        return NewSession(session: session, cookie: cookie, page: page)
    }

    /// All sessions, the newest first.
    var sessions: [SessionTable.Session] {
        state.withLock { state in
            state.dropEnded(at: clock.now())
            return state.sessions.all
        }
    }

    /// Ends a session, and those of the links that it made.
    /// - Returns: Whether there was one.
    func closeSession(_ id: String) -> Bool {
        state.withLock { state in
            defer { state.dropEnded(at: clock.now()) }
            return state.sessions.close { $0.id == id } > 0
        }
    }

    // MARK: - Tokens

    /// The named tokens that have not ended, the newest first.
    var tokens: [ConsoleToken] {
        let now = clock.now().milliseconds / 1000
        return state.withLock { $0.tokens.tokens }.filter { $0.expires > now }
            .sorted { ($0.created, $0.id) > ($1.created, $1.id) }
    }

    /// Makes a named token; one that a token makes ends with that token.
    /// - Returns: The token, and its secret, which is known only now.
    func makeToken(
        _ request: TokenRequest,
        by caller: ConsoleCaller? = nil
    ) async throws -> (token: ConsoleToken, secret: String) {
        let days = request.days ?? 90
        guard ConsoleTokens.isName(request.name) else {
            throw AdminError(.badRequest, "name must have 1 to 64 bytes, without control characters")
        }
        guard ConsoleTokens.days.contains(days) else {
            throw AdminError(.badRequest, "days must be a number from 1 to \(ConsoleTokens.days.upperBound)")
        }
        guard caller.map(isStillIn) ?? true else { throw ConsoleGate.isUnknown }
        let secret = ConsoleSecret.make(bytes: 32)
        let now = clock.now()
        let maker = state.withLock { state in caller.flatMap { state.token(below: $0.ground) } }
        let expires = now.milliseconds / 1000 + Int64(days) * 86_400
        if let maker, request.days != nil, expires > maker.expires {
            let end = WallTime(seconds: maker.expires).rfc3339
            throw AdminError(.badRequest, "days must not reach beyond the end of the token \(maker.name), \(end)")
        }
        let token = ConsoleToken(
            id: ConsoleSecret.makeID(),
            name: request.name,
            role: request.role,
            sha256: SecretDigest(secret).hexadecimal,
            created: now.milliseconds / 1000,
            expires: min(expires, maker?.expires ?? expires),
            maker: maker?.id
        )
        try await book.change { tokens in
            // Its maker may have been revoked meanwhile.
            if let maker, !tokens.has(maker.id, at: now) { throw ConsoleGate.isUnknown }
            try tokens.add(token, at: now)
        } then: { tokens in
            state.withLock { $0.tokens = tokens }
        }
        return (token, secret)
    }

    /// Revokes a named token and those that were made with it, and ends the sessions that stand on them.
    /// - Returns: All of them, that token first.
    func revokeToken(_ id: String) async throws -> [ConsoleToken] {
        try await book.change {
            try $0.remove(id)
        } then: { tokens in
            state.withLock { state in
                state.tokens = tokens
                state.dropEnded(at: clock.now())
            }
        }
    }
}

/// Changes the named tokens one after the other: first the file, then memory.
private actor TokenBook {
    private var tokens: ConsoleTokens
    private let save: ConsoleAccess.Save

    init(_ tokens: ConsoleTokens, save: @escaping ConsoleAccess.Save) {
        self.tokens = tokens
        self.save = save
    }

    func change<Result: Sendable>(
        _ change: @Sendable (inout ConsoleTokens) throws -> Result,
        then use: @Sendable (ConsoleTokens) -> Void
    ) throws -> Result {
        var changed = tokens
        let result = try change(&changed)
        try save(changed)
        tokens = changed
        use(changed)
        return result
    }
}
