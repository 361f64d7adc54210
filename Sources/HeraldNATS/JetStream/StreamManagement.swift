/// Creation, change and inspection of streams.
extension JetStream {
    /// Time for an answer of the management interface: the cluster may have to elect a leader first.
    package static let managementTime: Duration = .seconds(10)

    /// Creates a stream. One with the same configuration may exist.
    package func createStream(
        _ configuration: StreamConfiguration,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) -> StreamInfo {
        throw .failed(.notConnected)
    }

    package func updateStream(
        _ configuration: StreamConfiguration,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) -> StreamInfo {
        throw .failed(.notConnected)
    }

    /// State of a stream.
    /// - Throws: ``JetStreamRefusal/streamNotFound`` if there is none.
    package func streamInfo(
        _ name: String,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) -> StreamInfo {
        throw .failed(.notConnected)
    }

    package func deleteStream(
        _ name: String,
        within time: Duration = Self.managementTime
    ) async throws(JetStreamError) {
        throw .failed(.notConnected)
    }
}
