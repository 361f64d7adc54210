/// A ledger whose changes other nodes of a cluster get, and which takes theirs.
///
/// Once it is shared, it notes each change in the same transaction, whichever process makes it. What is noted stays until
/// ``wasShared(_:)``, so a crash forgets nothing. Its errors are ``TrustError``.
package protocol SharedLedger: TrustStore {
    /// Notes the changes from now on; `anew` forgets what was shared and taken: everything counts as unshared again.
    func beginSharing(anew: Bool) async throws

    /// The sequence of the log up to which every fact of the ledger was taken; nil if none was.
    func sharedPosition() async throws -> UInt64?

    /// Facts that other nodes may lack, those that changed first at first.
    func unshared(limit: Int) async throws -> [UnsharedFact]

    /// Ends the note of facts that the log has, unless they have changed since.
    func wasShared(_ numbers: [Int64]) async throws

    /// Merges facts of the log with those of the ledger; `position` is the sequence up to which they are all, nil for
    /// single ones.
    /// - Returns: The difference that it made.
    func take(_ facts: [SharedFact], upTo position: UInt64?) async throws -> TakenFacts

    /// The shared files as the log has them.
    func sharedFiles() async throws -> [SharedFile.Name: SharedFileState]

    func note(_ state: SharedFileState, of file: SharedFile.Name) async throws
}

/// A fact that other nodes may lack.
package struct UnsharedFact: Sendable {
    /// The number of the ledger's note; nil for a fact of a file.
    package let number: Int64?
    package let fact: SharedFact

    package init(number: Int64?, fact: SharedFact) {
        self.number = number
        self.fact = fact
    }
}

/// The difference that taking facts made.
package struct TakenFacts: Hashable, Sendable {
    package var isChanged = false
    /// Whether a certificate or device was revoked.
    package var isRevocation = false

    package init() {}
}

/// A shared file as the log has it.
package struct SharedFileState: Hashable, Sendable {
    package let revision: UInt64
    /// SHA-256 of the content.
    package let digest: [UInt8]

    package init(revision: UInt64, digest: [UInt8]) {
        self.revision = revision
        self.digest = digest
    }
}
