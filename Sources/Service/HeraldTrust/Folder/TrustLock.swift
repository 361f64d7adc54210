import Dispatch
import Foundation
import HeraldIdentity

/// The lock of the trust folder's files.
///
/// A service at its start and each command that changes a file hold it briefly.
final class TrustLock: Sendable {
    private let descriptor: CInt

    /// Waits for the lock, on a thread that may block.
    private static func take(_ layout: TrustLayout, mayCreate: Bool = true) async throws -> TrustLock {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try TrustLock(layout, mayCreate: mayCreate) })
            }
        }
    }

    private init(_ layout: TrustLayout, mayCreate: Bool) throws {
        let flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (mayCreate ? O_CREAT : 0)
        descriptor = Foundation.open(layout.lock, flags, 0o600)
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

    /// Holds the lock of a folder of which this process may be a guest: the file of the lock is not made.
    ///
    /// Made by root, it would keep the service out.
    static func withExisting<Result>(_ layout: TrustLayout, _ body: () throws -> Result) async throws -> Result {
        guard TrustFile.exists(layout.lock) else { return try body() }
        let lock = try await take(layout, mayCreate: false)
        defer { withExtendedLifetime(lock) {} }
        return try body()
    }
}
