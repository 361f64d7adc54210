import HeraldCluster
import HeraldNATS
import Logging

/// Steps of a start that wait for the servers, or refuse them.
enum ClusterStart {
    /// The time between two looks at the servers and streams.
    static let look = Duration.seconds(5)
    /// The time in which servers that have just started must serve reads.
    private static let firstRead = Duration.seconds(60)
    /// The looks in a row that must show a loss: a paused leader knows after ten seconds that it is none.
    static let lossLooks = 6
    /// The looks in a row after which a loss is a warning: a leader that was paused or cut off shows old states before.
    static let lossWarning = 3

    /// Repeats work until the servers answer: for a while after their own start, they serve no reads.
    /// - Throws: The error of the work, or ``CommandError/Code/unreachable`` after ``firstRead``.
    static func onceReadable<Value: Sendable>(
        onStep step: (String) -> Void,
        _ work: @Sendable () async throws -> Value
    ) async throws -> Value {
        let end = ContinuousClock.now + firstRead
        var isFirst = true
        while true {
            do {
                return try await work()
            } catch  where isTemporary(error) {
                guard .now < end else {
                    throw CommandError(
                        .unreachable,
                        "the NATS servers do not serve their streams: start those that are down (herald cluster status)"
                    )
                }
                if isFirst {
                    step("the NATS servers serve no reads yet: waiting up to \(firstRead.components.seconds) s")
                }
                isFirst = false
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private static func isTemporary(_ error: any Error) -> Bool {
        switch error {
        case LogFailure.unavailable, LogFailure.behind, JetStreamError.failed: true
        case JetStreamError.refused(let refusal): refusal.status == JetStreamRefusal.unavailable
        default: false
        }
    }

    /// The losses that the streams show again and again: a server that was the leader, and was paused, shows old states for
    /// some seconds.
    static func lasting(
        _ streams: [LogStream],
        _ seen: inout SeenStreams,
        _ checks: EngineChecks,
        onStep step: (String) -> Void
    ) async -> [ClusterFinding] {
        for number in 1..<lossLooks {
            let losses = await checks.look(streams, &seen).findings.filter { $0.severity == .refusal }
            if losses.isEmpty { return [] }
            if number == 1 {
                let seconds = look.components.seconds * Int64(lossLooks - 1)
                step("the NATS servers show less than they had: waiting \(seconds) s for one that has more")
            }
            try? await Task.sleep(for: look)
        }
        return await checks.look(streams, &seen).findings.filter { $0.severity == .refusal }
    }

    /// Logs warnings.
    /// - Throws: ``CommandError/Code/refused`` with the first refusal.
    static func refuse(_ findings: [ClusterFinding], _ logger: Logger) throws {
        for finding in findings where finding.severity == .warning { logger.warning("\(finding.line)") }
        if let refusal = findings.first(where: { $0.severity == .refusal }) {
            throw CommandError(.configuration, refusal.line)
        }
    }
}
