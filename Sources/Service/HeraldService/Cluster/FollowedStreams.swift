import CoreMetrics
import HeraldCluster

/// The streams of the log that a node follows, as operators see them.
struct FollowedStreams: Sendable {
    private let gauges: [LogStream: Gauge]

    init(_ streams: [LogStream]) {
        gauges = Dictionary(
            uniqueKeysWithValues: streams.map { stream in
                (stream, Gauge(label: "herald_cluster_follower_lag_seconds", dimensions: [("stream", stream.name)]))
            }
        )
    }

    /// Sets the gauges.
    func measure(_ lags: [(stream: LogStream, lag: Duration)]) {
        for (stream, lag) in lags { gauges[stream]?.record(lag / .seconds(1)) }
    }

    /// The reason why the node is not ready, if it is behind with a stream without which it refuses requests.
    static func problem(_ lags: [(stream: LogStream, lag: Duration)]) -> String? {
        worst(lags.filter { $0.stream.isForRequests })
    }

    /// The fault of a node that is behind with another stream.
    static func warning(_ lags: [(stream: LogStream, lag: Duration)]) -> String? {
        worst(lags.filter { !$0.stream.isForRequests })
    }

    private static func worst(_ lags: [(stream: LogStream, lag: Duration)]) -> String? {
        let behind = lags.filter { $0.lag > ClusterLimits.followerFreshness }
        guard let worst = behind.max(by: { $0.lag < $1.lag }) else { return nil }
        return "this node is \(worst.lag.components.seconds) s behind the cluster's log (\(worst.stream.name)): "
            + worst.stream.consequence
    }

    /// - Throws: ``CommandError/Code/refused`` for a node that may have missed the removal of records.
    static func check(_ lags: [(stream: LogStream, lag: Duration)]) throws {
        guard let lost = lags.first(where: { $0.lag > ClusterLimits.longestLag }) else { return }
        throw CommandError(
            .refused,
            "this node has heard nothing of \(lost.stream.name) for \(lost.lag.components.seconds / 60) minutes, and the log "
                + "keeps removals for an hour: start the node again, so that it loads everything"
        )
    }
}

extension LogStream {
    /// Whether a node that is behind with the stream refuses requests, or rings without an answer.
    fileprivate var isForRequests: Bool {
        switch self {
        case .meta, .trust: false
        case .apps, .devices, .registrations, .mailbox, .channels, .broadcasts: true
        }
    }

    /// The consequence of being behind with the stream.
    fileprivate var consequence: String {
        switch self {
        case .meta: "it does not know which other nodes live"
        case .trust: "what other nodes revoke or issue is not in force here, and providers get 503 after 15 s"
        case .mailbox: "it does not know which devices have connected to other nodes"
        case .broadcasts: "its devices do not get the broadcasts of other nodes"
        case .apps, .devices, .registrations, .channels:
            "it cannot confirm that a device token is not valid, and providers get 503"
        }
    }
}
