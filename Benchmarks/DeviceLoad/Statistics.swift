import LoadKit
import Synchronization

/// What the devices have received while it was measured.
final class Statistics: Sendable {
    private struct State {
        var began: MonotonicTime?
        var received = 0
        /// Nanoseconds from send to receipt.
        var latencies: [UInt64] = []
        var tokens: [String] = []
    }

    private let state = Mutex(State())

    func begin() {
        state.withLock { $0 = State(began: .now) }
    }

    func received(token: String) {
        state.withLock { $0.tokens.append(token) }
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

    /// Ends the measurement.
    func end() -> [String: Double] {
        state.withLock { state in
            guard let began = state.began else { return [:] }
            let seconds = MonotonicTime.now.seconds(since: began)
            state.latencies.sort()
            func percentile(_ share: Double) -> Double {
                guard !state.latencies.isEmpty else { return 0 }
                return Double(state.latencies[Int(Double(state.latencies.count - 1) * share)]) / 1e6
            }
            state.began = nil
            return [
                "received": Double(state.received),
                "seconds": seconds,
                "rate": Double(state.received) / seconds,
                "p50_ms": percentile(0.5),
                "p99_ms": percentile(0.99),
            ]
        }
    }
}
