/// Names of the relay's tables, each with the same prefix.
package struct TableNames: Hashable, Sendable {
    /// Maximum length of a prefix: PostgreSQL cuts names after 63 bytes.
    private static let longestPrefix = 32

    /// The prefix; empty by default.
    package let prefix: String

    /// The names without a prefix.
    package init() {
        prefix = ""
    }

    /// The names with a prefix.
    /// - Throws: ``RelayStoreError/Code/unusable`` for a prefix that would need quotes in SQL.
    package init(prefix: String) throws(RelayStoreError) {
        let isName = prefix.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte == UInt8(ascii: "_")
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
        let isStart = prefix.utf8.first.map { $0 > UInt8(ascii: "9") } ?? true
        guard isName, isStart, prefix.utf8.count <= Self.longestPrefix, !prefix.hasPrefix("sqlite_") else {
            throw RelayStoreError(
                .unusable,
                """
                `table-prefix` must have at most \(Self.longestPrefix) lower-case letters, digits and underscores, without a \
                digit at its start, like herald_
                """
            )
        }
        self.prefix = prefix
    }

    var queue: String { prefix + "push_queue" }
    var outcomes: String { prefix + "push_outcomes" }
    var devices: String { prefix + "devices" }
    var templates: String { prefix + "push_templates" }
    var breakers: String { prefix + "push_breakers" }
    /// The trigger that queues a sent row again when another program sets its `time_sent` to NULL.
    var resend: String { prefix + "push_queue_resend" }

    /// A statement that is written without a prefix, with these names.
    func renamed(_ statement: String) -> String {
        // In one pass: the prefix may contain one of the names.
        statement.replacing(/devices|push_(queue|outcomes|templates|breakers)/) { prefix + $0.output.0 }
    }

    /// The command that prints the statements which create the tables.
    var schemaCommand: String { "herald relay schema" + (prefix.isEmpty ? "" : " --table-prefix \(prefix)") }
}
