import HeraldModel

/// The holder of a session or token.
struct ConsoleMember: Hashable, Sendable {
    let name: String
    let role: ConsoleRole
    /// The named token on which it stands, whose end ends it too.
    var token: String?
    /// End of that token.
    var ends: WallTime?
}

/// The codes of one-time links.
struct LoginCodes: Sendable {
    static let lifetime = Duration.seconds(60)
    /// One more makes the oldest invalid.
    static let maximum = 64

    private var codes: [SecretDigest: (member: ConsoleMember, ends: WallTime)] = [:]

    mutating func add(
        _ digest: SecretDigest,
        for member: ConsoleMember,
        at now: WallTime,
        lifetime: Duration = Self.lifetime
    ) {
        codes = codes.filter { $0.value.ends > now }
        if codes.count >= Self.maximum, let oldest = codes.min(by: { $0.value.ends < $1.value.ends }) {
            codes[oldest.key] = nil
        }
        codes[digest] = (member, now + lifetime)
    }

    /// The member of a code, which is then used up; nil if it is unknown, used or too old.
    mutating func redeem(_ digest: SecretDigest, at now: WallTime) -> ConsoleMember? {
        guard let code = codes.removeValue(forKey: digest), code.ends > now else { return nil }
        return code.member
    }
}
