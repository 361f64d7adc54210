import HeraldCluster
import HeraldTestSupport
import Logging

extension Logger {
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}

extension ReplicatedLog {
    /// ``append(_:to:_:)`` as an async call, which has time on a busy machine.
    func append(_ message: LogMessage, to stream: LogStream) async -> AppendOutcome {
        var message = message
        message.answerTime = .patience
        return await withCheckedContinuation { continuation in
            append(message, to: stream) { continuation.resume(returning: $0) }
        }
    }

    /// ``read(_:in:atLeast:_:)`` as an async call.
    func read(_ subjects: [LogSubject], in stream: LogStream, atLeast bound: UInt64) async throws -> [LogEntry] {
        try await withCheckedThrowingContinuation { continuation in
            read(subjects, in: stream, atLeast: bound) { continuation.resume(with: $0) }
        }
    }
}
