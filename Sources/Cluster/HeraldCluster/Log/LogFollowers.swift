import Synchronization

/// The followers of several streams, which begin and end together.
final class LogFollowers: Sendable {
    private let followers = Mutex<[LogStream: LogFollower]>([:])

    /// Follows streams, and waits until everything that was stored before this call has been applied; after a failure it may
    /// be called again.
    /// - Throws: As ``LogFollower/start()``.
    func start(_ streams: [LogStream], _ make: (LogStream) -> LogFollower) async throws {
        let followers = followers.withLock { followers in
            if followers.isEmpty {
                for stream in streams { followers[stream] = make(stream) }
            }
            return followers
        }
        try await withThrowingTaskGroup { group in
            for follower in followers.values { group.addTask { try await follower.start() } }
            try await group.waitForAll()
        }
    }

    /// Ends the following.
    func close() {
        let followers = followers.withLock { followers in
            defer { followers = [:] }
            return followers
        }
        for follower in followers.values { follower.cancel() }
    }

    /// All of them, once they have begun.
    var all: [LogFollower] { followers.withLock { Array($0.values) } }

    /// Takes over everything that was stored in streams before this call; those that are not followed are left out.
    func catchUp(_ streams: [LogStream], _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let followers = followers.withLock { followers in streams.compactMap { followers[$0] } }
        LogFollower.catchUp(followers) { done($0.mapError { $0 as any Error }) }
    }
}
