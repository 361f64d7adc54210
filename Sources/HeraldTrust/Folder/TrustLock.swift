import Foundation

/// The right to write to the trust folder.
///
/// Held for moments: a service at its start, and each command that issues or revokes, take it in turn.
final class TrustLock: Sendable {
    private let descriptor: CInt

    /// Waits until nobody else writes.
    init(_ layout: TrustLayout) throws {
        descriptor = Foundation.open(layout.lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw TrustFile.failure(.unwritable, "cannot open \(layout.lock)") }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw TrustFile.failure(.unwritable, "cannot lock \(layout.lock)") }
        }
    }

    deinit {
        close(descriptor)
    }

    static func with<Result>(_ layout: TrustLayout, _ body: () throws -> Result) throws -> Result {
        let lock = try TrustLock(layout)
        defer { withExtendedLifetime(lock) {} }
        return try body()
    }
}
