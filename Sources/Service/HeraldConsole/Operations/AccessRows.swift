import HTTPTypes

// Rows of links, sessions, tokens and the audit.
extension AdminAPI {
    package static let makeLink = AdminOperation<LinkRequest, LinkAnswer>(
        .post,
        "links",
        role: .admin,
        says: "Make a one-time link for the page.",
        answer: """
            The code; the link is the address of the page with `#login=` and the code. It works once, for a minute.
            """,
        status: 201
    )
    package static let signIn = AdminOperation<SessionRequest, SessionAnswer>(
        .post,
        "session",
        role: .none,
        .signsIn,
        says: "Sign in with the code of a link, or with a token.",
        answer: "The session; the field `set-cookie` has its cookie.",
        more: """
            Give either `code` or `token`. After ten wrong ones within a minute, further wrong ones of that network get 429.
            """,
        status: 201,
        fails: [415]
    )
    package static let session = AdminOperation<NoContent, SessionAnswer>(
        .get,
        "session",
        role: .viewer,
        says: "The caller."
    )
    package static let signOut = AdminOperation<NoContent, NoContent>(
        .delete,
        "session",
        role: .viewer,
        .signsIn,
        says: "Sign out.",
        answer: "The session has ended.",
        status: 204
    )
    package static let sessions = AdminOperation<NoContent, Page<SessionEntry>>(
        .get,
        "sessions",
        role: .admin,
        says: "The sessions of browsers.",
        answer: "The sessions, the newest first."
    )
    package static let endSession = AdminOperation<NoContent, NoContent>(
        .delete,
        "sessions/{id}",
        role: .admin,
        says: "End a session, its links, and the sessions that were opened with those.",
        answer: "The session has ended.",
        status: 204,
        fails: [404]
    )
    package static let tokens = AdminOperation<NoContent, Page<TokenEntry>>(
        .get,
        "tokens",
        role: .admin,
        says: "The named tokens that are valid.",
        answer: "The tokens, the newest first, without their secrets."
    )
    package static let makeToken = AdminOperation<TokenRequest, TokenEntry>(
        .post,
        "tokens",
        role: .admin,
        says: "Make a named token for a tool.",
        answer: "The token. Only this answer has its secret.",
        status: 201,
        fails: [409]
    )
    package static let revokeToken = AdminOperation<NoContent, NoContent>(
        .delete,
        "tokens/{id}",
        role: .admin,
        says: "Revoke a token, and end the tokens, sessions and links that were made with it.",
        answer: "The token is revoked.",
        status: 204,
        fails: [404]
    )
    package static let audit = AdminOperation<NoContent, Page<AuditEntry>>(
        .get,
        "audit",
        takes: [auditLimit, auditBefore],
        role: .admin,
        says: "Who changed what, the newest first.",
        answer: "The lines of the audit."
    )
    static let auditLimit = Parameter("limit", 1...1000, standard: 100, "The most lines of the answer.")
    static let auditBefore = Parameter("before", 1...Int.max, "The value of `next` of the answer before.")

    /// The rows of the console.
    ///
    /// Those whose types belong to the service stand with the service.
    package static let rows = accessRows + serviceRows + journalRows + fleetRows

    static let accessRows: [OperationRow] = [
        makeLink.row, signIn.row, session.row, signOut.row, sessions.row, endSession.row, tokens.row, makeToken.row,
        revokeToken.row, audit.row,
    ]
}
