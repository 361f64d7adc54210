package import HeraldModel
import HeraldWeb
import Hummingbird
import Synchronization

/// Knows who may use the console: one-time codes, sessions, and tokens.
package final class ConsoleAccess: Sendable {
    /// Writes the file of the named tokens.
    package typealias Save = @Sendable (ConsoleTokens) throws -> Void

    /// An address that tries secrets.
    ///
    /// Wrong sign-ins do not stop the tools of the same address.
    private struct Guesser: Hashable, Sendable {
        let address: String
        let signsIn: Bool
    }

    private struct State: Sendable {
        var codes = LoginCodes()
        var sessions = SessionTable()
        var tokens: ConsoleTokens
        var throttle = KeyedRateLimiter<Guesser>(burst: 10, interval: .seconds(6), capacity: 4096)
    }

    /// Whether the port itself speaks TLS.
    let isOverTLS: Bool
    private let adminToken: SecretDigest?
    private let clock: any WallClock
    private let state: Mutex<State>
    private let book: TokenBook

    /// - Parameters:
    ///   - adminToken: The token in `run/admin.token`; an empty one admits nobody.
    ///   - tokens: The named tokens.
    ///   - isOverTLS: Whether the port itself speaks TLS.
    ///   - clock: The machine's clock, which nobody moves for a test.
    ///   - save: Writes the file of the named tokens.
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
    ///
    /// A session counts only with the header `herald-console: 1`, which pages of other sites cannot send.
    /// - Parameters:
    ///   - request: The request.
    ///   - address: The address that it comes from.
    ///   - isUse: Whether the session's idle time begins anew.
    /// - Returns: The caller; nil for nobody.
    /// - Throws: ``AdminError`` for a wrong token, or after too many of them.
    func caller(of request: Request, from address: String, isUse: Bool = true) throws -> ConsoleCaller? {
        if let secret = BearerToken<ConsoleContext>.secret(in: request.headers[.authorization]) {
            let member = try guarded(Guesser(address: address, signsIn: false)) { state, now in
                holder(of: SecretDigest(secret), state, at: now)
            }
            return member.map { ConsoleCaller(member: $0, address: address, proof: .token) }
        }
        guard let session = session(of: request, isUse: isUse) else { return nil }
        guard SessionCookie.isFromPage(request) else {
            throw AdminError(.unauthorized, "the cookie counts only with the field `herald-console: 1`")
        }
        return ConsoleCaller(member: session.member, address: address, proof: .session)
    }

    /// The session of a request's cookie.
    func session(of request: Request, isUse: Bool = true) -> SessionTable.Session? {
        SessionCookie.secrets(in: request, isOverTLS: isOverTLS).lazy.compactMap { [self] secret in
            state.withLock { $0.sessions.session(SecretDigest(secret), at: clock.now(), isUse: isUse) }
        }.first
    }

    /// The holder of a token; nil if it is wrong.
    private func holder(of digest: SecretDigest, _ state: State, at now: WallTime) -> ConsoleMember? {
        if digest == adminToken { return ConsoleMember(name: "admin.token", role: .admin) }
        return state.tokens.token(digest, at: now)?.member
    }

    /// Counts wrong secrets of an address; without a right one at its limit, which a guess might be.
    private func guarded<Value>(_ guesser: Guesser, _ check: (inout State, WallTime) -> Value?) throws -> Value? {
        let now = clock.now()
        return try state.withLock { state in
            if let wait = state.throttle.wait(guesser, at: now) {
                let seconds = Int(wait.components.seconds) + 1
                let words = "too many wrong codes or tokens from \(guesser.address): try again in \(seconds) s"
                throw AdminError(.tooMany, words, retryAfter: seconds)
            }
            let value = check(&state, now)
            if value == nil { state.throttle.take(guesser, at: now) }
            return value
        }
    }

    // MARK: - Sessions

    /// Makes the code of a one-time link.
    func makeCode(for member: ConsoleMember) -> (code: String, expires: WallTime) {
        let code = ConsoleSecret.make(bytes: 16)
        let now = clock.now()
        state.withLock { $0.codes.add(SecretDigest(code), for: member, at: now) }
        return (code, now + LoginCodes.lifetime)
    }

    /// Makes the code of the link that `--demo` prints: for an admin, and longer valid, because nobody has asked for it.
    package func makeDemoCode() -> String {
        let code = ConsoleSecret.make(bytes: 16)
        let demo = ConsoleMember(name: "demo", role: .admin)
        state.withLock { $0.codes.add(SecretDigest(code), for: demo, at: clock.now(), lifetime: .seconds(600)) }
        return code
    }

    /// Opens a session for a code or token.
    /// - Returns: The session, and the secret for its cookie.
    /// - Throws: ``AdminError`` if it is wrong.
    func open(_ proof: SessionRequest, from address: String) throws -> (session: SessionTable.Session, secret: String) {
        let secret = ConsoleSecret.make(bytes: 32)
        let session: SessionTable.Session? = try guarded(Guesser(address: address, signsIn: true)) { state, now in
            let digest = SecretDigest(proof.code ?? proof.token ?? "")
            let member =
                proof.code == nil ? holder(of: digest, state, at: now) : state.codes.redeem(digest, at: now)
            guard let member else { return nil }
            return state.sessions.open(
                SecretDigest(secret),
                id: ConsoleSecret.makeID(),
                as: member,
                address: address,
                at: now
            )
        }
        guard let session else {
            throw AdminError(
                .unauthorized,
                proof.code != nil
                    ? "this link was used, or is too old: make a new one with `herald console`"
                    : "this token is unknown or has expired: see `herald console tokens`"
            )
        }
        return (session, secret)
    }

    /// All sessions, the newest first.
    var sessions: [SessionTable.Session] {
        state.withLock { $0.sessions.all(at: clock.now()) }
    }

    /// Ends a session.
    /// - Returns: Whether there was one.
    func closeSession(_ id: String) -> Bool {
        state.withLock { $0.sessions.close { $0.id == id } } > 0
    }

    // MARK: - Tokens

    /// The named tokens that have not ended, the newest first.
    var tokens: [ConsoleToken] {
        let now = clock.now().milliseconds / 1000
        return state.withLock { $0.tokens.tokens }.filter { $0.expires > now }
            .sorted { ($0.created, $0.id) > ($1.created, $1.id) }
    }

    /// Makes a named token.
    /// - Returns: The token, and its secret, which is known only now.
    func makeToken(_ request: TokenRequest) async throws -> (token: ConsoleToken, secret: String) {
        let days = request.days ?? 90
        guard ConsoleTokens.isName(request.name) else {
            throw AdminError(.badRequest, "name must have 1 to 64 bytes, without control characters")
        }
        guard ConsoleTokens.days.contains(days) else {
            throw AdminError(.badRequest, "days must be a number from 1 to \(ConsoleTokens.days.upperBound)")
        }
        let secret = ConsoleSecret.make(bytes: 32)
        let now = clock.now()
        let token = ConsoleToken(
            id: ConsoleSecret.makeID(),
            name: request.name,
            role: request.role,
            sha256: SecretDigest(secret).hexadecimal,
            created: now.milliseconds / 1000,
            expires: now.milliseconds / 1000 + Int64(days) * 86_400
        )
        try await book.change {
            try $0.add(token, at: now)
        } then: { tokens in
            state.withLock { $0.tokens = tokens }
        }
        return (token, secret)
    }

    /// Revokes a named token, and ends the sessions that were opened with it.
    func revokeToken(_ id: String) async throws -> ConsoleToken {
        try await book.change {
            try $0.remove(id)
        } then: { tokens in
            state.withLock { state in
                state.tokens = tokens
                state.sessions.close { $0.member.token == id }
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
