/// State of a stream, as its leader sees it.
package struct StreamInfo: Hashable, Sendable, Decodable {
    package let configuration: StreamConfiguration
    /// Time of creation (RFC 3339, in the server's spelling).
    ///
    /// Another time is another stream.
    package let created: String
    package let state: State
    /// Leader and followers; nil if the server is not part of a cluster.
    package let cluster: Cluster?
    /// Time of the answer (RFC 3339); nil if the server does not say it.
    package let answered: String?

    package struct State: Hashable, Sendable, Decodable {
        package let messages: UInt64
        package let bytes: UInt64
        package let firstSequence: UInt64
        package let lastSequence: UInt64

        private enum CodingKeys: String, CodingKey {
            case messages, bytes
            case firstSequence = "first_seq"
            case lastSequence = "last_seq"
        }
    }

    package struct Cluster: Hashable, Sendable, Decodable {
        package let name: String?
        /// Name of the server that leads; nil during an election.
        package let leader: String?
        package let replicas: [Replica]?
    }

    /// Follower of the leader.
    package struct Replica: Hashable, Sendable, Decodable {
        package let name: String
        /// Whether it has caught up.
        package let current: Bool
        package let offline: Bool?
        /// Entries of the log that it lacks.
        package let lag: UInt64?
    }

    private enum CodingKeys: String, CodingKey {
        case created, state, cluster
        case answered = "ts"
        case configuration = "config"
    }
}
