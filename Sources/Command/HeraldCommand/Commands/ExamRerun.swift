import ArgumentParser
import Foundation
import HeraldExam
import UnixSignals

/// A run of the command in the private network, and what stops it.
struct ExamRerun: Sendable {
    let network: PrivateNetwork
    let arguments: [String]

    /// Runs until it ends, or is told to end.
    /// - Returns: Its exit status.
    func status() async throws -> Int32 {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let (child, isStarted) = AsyncStream.makeStream(of: pid_t.self)
        return try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask {
                var started = child.makeAsyncIterator()
                guard let process = await started.next() else { return nil }
                // The first signal lets the exam finish; the next one ends it.
                var end = SIGTERM
                for await _ in signals {
                    // `unshare` waits for the first process of the network.
                    kill(end == SIGTERM ? Orphans.children(of: "\(process)").first ?? process : process, end)
                    end = SIGKILL
                }
                return nil
            }
            group.addTask {
                try await withCheckedThrowingContinuation { continuation in
                    Thread.detachNewThread {
                        continuation.resume(with: Result { try network.run(arguments) { isStarted.yield($0) } })
                    }
                }
            }
            defer { group.cancelAll() }
            while let status = try await group.next() { if let status { return status } }
            return 1
        }
    }

    /// Runs a closure whose task is cancelled at SIGINT and SIGTERM.
    /// - Throws: The closure's error; exit status 130 if it was stopped.
    static func untilStopped<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask {
                for await _ in signals { return nil }
                return nil
            }
            group.addTask { try await body() }
            defer { group.cancelAll() }
            guard let first = try await group.next(), let value = first else {
                group.cancelAll()
                while (try? await group.next()) != nil {}
                throw ExitCode(130)
            }
            return value
        }
    }
}
