import Foundation

/// Runs code as an ordinary user, also if root runs the tests.
enum OrdinaryUser {
    /// `nobody`, on every system.
    private static let number: uid_t = 65534

    /// Runs code on its own thread.
    ///
    /// The superuser's thread gets another user's rights to files, which on Linux are the thread's own and take the
    /// superuser's privileges over files with them (setfsuid(2)); anybody else's is as it is.
    /// - Parameters:
    ///   - paths: What belongs to that user from now on.
    ///   - body: What is run.
    /// - Returns: What it returns.
    /// - Throws: What it throws.
    static func run<Value: Sendable>(
        owning paths: [String],
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                #if os(Linux)
                if geteuid() == 0 {
                    for path in paths { chown(path, number, gid_t.max) }
                    setUserForFiles(number)
                }
                #endif
                continuation.resume(with: Result { try body() })
            }
        }
    }

    #if os(Linux)
    /// setfsuid(2), whose header Swift's module of the C library leaves out.
    private static func setUserForFiles(_ user: uid_t) {
        typealias Function = @convention(c) (uid_t) -> CInt
        guard let symbol = dlsym(nil, "setfsuid") else { return }
        _ = unsafeBitCast(symbol, to: Function.self)(user)
    }
    #endif
}
