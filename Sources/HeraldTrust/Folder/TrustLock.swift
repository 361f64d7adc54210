import Dispatch
import Foundation

/// The lock of the trust folder's files.
///
/// A service at its start and each command that changes a file hold it briefly.
final class TrustLock: Sendable {
    private let descriptor: CInt

    /// Waits for the lock, on a thread that may block.
    private static func take(_ layout: TrustLayout) async throws -> TrustLock {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try TrustLock(layout) }) }
        }
    }

    private init(_ layout: TrustLayout) throws {
        descriptor = Foundation.open(layout.lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw TrustFile.failure(.unwritable, "cannot open \(layout.lock)") }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw TrustFile.failure(.unwritable, "cannot lock \(layout.lock)") }
        }
    }

    deinit {
        close(descriptor)
    }

    static func with<Result>(_ layout: TrustLayout, _ body: () async throws -> Result) async throws -> Result {
        let lock = try await take(layout)
        defer { withExtendedLifetime(lock) {} }
        return try await body()
    }
}
