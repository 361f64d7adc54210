import LoadKit
import Synchronization

/// The messages that devices received and publishers sent during a measurement.
final class Statistics: Sendable {
    private struct State {
        /// While it is measured; processor time in seconds.
        var began: (time: MonotonicTime, processor: Double)?
        var received = 0
        var published = 0
        /// Nanoseconds from send to completion.
        var latencies: [UInt64] = []
        var tokens: [String] = []
        /// Connections that ended although nobody wanted it.
        var lost = 0
    }

    private let state = Mutex(State())

    func begin() {
        state.withLock { state in
            state.began = (.now, ProcessorTime.seconds)
            state.received = 0
            state.published = 0
            state.latencies.removeAll(keepingCapacity: true)
        }
    }

    /// Notes a device token: the topic that it came by, and the token.
    func received(token: String) {
        state.withLock { $0.tokens.append(token) }
    }

    /// A message of a publisher was acknowledged.
    func published() {
        state.withLock { $0.published += 1 }
    }

    func lost() {
        state.withLock { $0.lost += 1 }
    }

    var tokens: [String] { state.withLock { $0.tokens } }

    func received(_ payload: [UInt8]) {
        let now = MonotonicTime.now.nanoseconds
        state.withLock { state in
            guard state.began != nil else { return }
            state.received += 1
            if let sent = LoadPayload.sent(payload), sent <= now { state.latencies.append(now - sent) }
        }
    }

    /// The percentile of sorted nanoseconds, in milliseconds; 0 if there are none.
    static func percentile(_ share: Double, of sorted: [UInt64]) -> Double {
        guard !sorted.isEmpty else { return 0 }
        return Double(sorted[Int(Double(sorted.count - 1) * share)]) / 1e6
    }

    /// Ends the measurement; nothing if none was begun.
    func end() -> [String: Double] {
        defer { state.withLock { $0.began = nil } }
        return soFar()
    }

    /// The measurement until now.
    func soFar() -> [String: Double] {
        state.withLock { state in
            guard let began = state.began else { return [:] }
            let seconds = MonotonicTime.now.seconds(since: began.time)
            let processor = ProcessorTime.seconds - began.processor
            state.latencies.sort()
            return [
                "received": Double(state.received),
                "published": Double(state.published),
                "seconds": seconds,
                "rate": Double(state.received) / seconds,
                "p50_ms": Statistics.percentile(0.5, of: state.latencies),
                "p99_ms": Statistics.percentile(0.99, of: state.latencies),
                "last_ms": Statistics.percentile(1, of: state.latencies),
                "load_cpu": processor,
                "lost": Double(state.lost),
            ]
        }
    }
}
