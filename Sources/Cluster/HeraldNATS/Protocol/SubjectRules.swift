/// Rules of subjects: tokens between dots, none of them empty, without space and control characters.
enum SubjectRules {
    /// Longest subject, in bytes: with both subjects a control line stays below the server's 4,096.
    static let maximumBytes = 1024

    /// Whether a message can be sent to the subject.
    static func isSubject(_ subject: String) -> Bool {
        isWellFormed(subject, allowsWildcards: false)
    }

    /// Whether a subscription can name the subject: `*` is any token, and `>` at the end any tokens.
    static func isFilter(_ subject: String) -> Bool {
        isWellFormed(subject, allowsWildcards: true)
    }

    private static func isWellFormed(_ subject: String, allowsWildcards: Bool) -> Bool {
        guard (1...maximumBytes).contains(subject.utf8.count) else { return false }
        var tokenBytes = 0
        // The wildcard that the token is, if it ends now; within a longer token it is a character like others.
        var wildcard: UInt8?
        for byte in subject.utf8 {
            switch byte {
            case UInt8(ascii: "."):
                let isAllowed = wildcard == nil || allowsWildcards && wildcard == UInt8(ascii: "*")
                guard tokenBytes > 0, isAllowed else { return false }
                tokenBytes = 0
                wildcard = nil
            case ...0x20, 0x7F: return false
            default:
                tokenBytes += 1
                let isWildcard = byte == UInt8(ascii: "*") || byte == UInt8(ascii: ">")
                wildcard = tokenBytes == 1 && isWildcard ? byte : nil
            }
        }
        return tokenBytes > 0 && (wildcard == nil || allowsWildcards)
    }

    /// Whether a name can be one token of a subject, such as the name of a stream.
    static func isToken(_ name: String) -> Bool {
        isSubject(name) && !name.utf8.contains { ".*>/\\".utf8.contains($0) }
    }
}
