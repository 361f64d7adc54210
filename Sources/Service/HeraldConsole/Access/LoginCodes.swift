import HeraldModel

/// The origin of a caller's access, with which everything ends that was made with it.
enum ConsoleGround: Hashable, Sendable {
    /// The control socket or `run/admin.token`, which end with the process.
    case process
    /// A named token, by its identifier.
    case token(String)
    /// A session, by its identifier.
    case session(String)
}

/// The holder of a session or token; one member's quotas are shared by all that they hold.
struct ConsoleMember: Hashable, Sendable {
    let name: String
    let role: ConsoleRole
    /// The token or session with which they signed in, or with which their link was made.
    var ground = ConsoleGround.process
    /// End of that token or session at the latest.
    var ends: WallTime?
}

/// The codes of one-time links.
struct LoginCodes: Sendable {
    static let lifetime = Duration.seconds(60)
    /// Open links of one token, session or socket; more are refused.
    static let maximum = 16

    private struct Code {
        let member: ConsoleMember
        let ends: WallTime
    }

    private var codes: [SecretDigest: Code] = [:]

    /// Adds a code.
    /// - Returns: Whether its maker has room for one more.
    mutating func add(
        _ digest: SecretDigest,
        for member: ConsoleMember,
        at now: WallTime,
        lifetime: Duration = Self.lifetime
    ) -> Bool {
        codes = codes.filter { $0.value.ends > now }
        guard codes.values.count(where: { $0.member.ground == member.ground }) < Self.maximum else { return false }
        codes[digest] = Code(member: member, ends: now + lifetime)
        return true
    }

    /// The member of a code, which is then used up; nil if it is unknown, used or too old.
    mutating func redeem(_ digest: SecretDigest, at now: WallTime) -> ConsoleMember? {
        guard let code = codes.removeValue(forKey: digest), code.ends > now else { return nil }
        return code.member
    }
}
