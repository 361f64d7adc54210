import Foundation
import NIOCore

/// Creation, inspection and deletion of streams.
extension JetStream {
    /// Time for an answer of the management interface: the cluster may have to elect a leader first.
    package static let managementTime: Duration = .seconds(10)

    /// Creates a stream.
    ///
    /// One with the same configuration may exist.
    package func createStream(_ configuration: StreamConfiguration) async throws(JetStreamError) -> StreamInfo {
        try await call("STREAM.CREATE", configuration.name, configuration)
    }

    /// State of a stream.
    /// - Throws: ``JetStreamRefusal/streamNotFound`` if there is none.
    package func streamInfo(
        _ name: String,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) -> StreamInfo {
        try await call("STREAM.INFO", name, Bool?.none, within: time)
    }

    package func deleteStream(_ name: String) async throws(JetStreamError) {
        let _: Nothing = try await call("STREAM.DELETE", name, Bool?.none)
    }

    /// Lets another server lead a stream: one that has caught up.
    package func moveLeader(of stream: String, to server: String) async throws(JetStreamError) {
        let body = LeaderMove(placement: LeaderMove.Placement(preferred: server))
        let _: Nothing = try await call("STREAM.LEADER.STEPDOWN", stream, body)
    }

    /// Request for a move of leadership.
    private struct LeaderMove: Encodable {
        struct Placement: Encodable {
            let preferred: String
        }

        let placement: Placement
    }

    private func call<Answer: Decodable & Sendable & SendableMetatype>(
        _ method: String,
        _ stream: String,
        _ body: (some Encodable)?,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) -> Answer {
        let result: Result<Answer, JetStreamError> = await withCheckedContinuation { continuation in
            call(method, [stream], body, within: time) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Calls a method of the interface, with the names of a stream and of what belongs to it: the rest of the subject.
    ///
    /// `body` is written as JSON; nil for no content. `done` is called once.
    func call<Answer: Decodable & SendableMetatype>(
        _ method: String,
        _ names: [String],
        _ body: (some Encodable)?,
        within time: Duration,
        done: @escaping @Sendable (Result<Answer, JetStreamError>) -> Void
    ) {
        let request = Request.message { result in
            done(Result { () throws(JetStreamError) in try Self.read(result) })
        }
        guard names.allSatisfy(SubjectRules.isToken) else {
            return connection.refuse(
                request,
                NATSError(.badMessage, "\"\(names.joined(separator: " "))\": not the name of a stream or consumer")
            )
        }
        var payload = ByteBuffer()
        do {
            if let body { payload.writeBytes(try ProtocolJSON.encode(body)) }
        } catch {
            return connection.refuse(request, NATSError(.badMessage, "the request cannot be written as JSON: \(error)"))
        }
        let subject = "$JS.API.\(method).\(names.joined(separator: "."))"
        connection.send(OutgoingPublish(subject: subject, payload: payload), request, within: time)
    }

    private static func read<Answer: Decodable & SendableMetatype>(
        _ result: Result<NATSMessage, NATSError>
    ) throws(JetStreamError) -> Answer {
        switch result {
        case .failure(let error): throw .failed(error)
        case .success(let message):
            let json = Data(message.payload.readableBytesView)
            if let error = (try? ProtocolJSON.decode(Failure.self, from: json))?.error {
                throw .refused(error.refusal)
            }
            do {
                return try JSONDecoder().decode(Answer.self, from: json)
            } catch {
                throw .failed(NATSError(.unreadableAnswer, "the answer of JetStream cannot be read: \(error)"))
            }
        }
    }

    private struct Failure: Decodable {
        let error: APIError?
    }

    /// Answer without content.
    private struct Nothing: Decodable {}
}
