import HeraldModel
import Synchronization

/// Keeps the record of this node in the log, and its name for this process: performs what ``NodeNameMachine`` decides.
package final class NodeMembership: Sendable {
    /// The error for a process whose node's name another one has.
    package struct NameIsTaken: Error, Hashable, CustomStringConvertible {
        package let own: NodeRecord
        package let other: NodeRecord

        package var description: String {
            """
            another node with the name \(own.node.text) serves this cluster: data folder \(other.folderName), Herald \
            \(other.version), started \(other.started.rfc3339); this one has data folder \(own.folderName): name one of them \
            otherwise with --node
            """
        }
    }

    private struct Renewals {
        var last = ContinuousClock.now
        /// The longest time between two of them since somebody asked.
        var longestGap = Duration.zero
    }

    private let log: any ReplicatedLog
    private let barriers: LogBarriers
    private let own: NodeRecord
    private let newestTokenKey: @Sendable () -> UInt32
    private let subject: LogSubject
    private let machine: Mutex<NodeNameMachine>
    private let successor = Mutex<NameIsTaken?>(nil)
    private let renewals = Mutex(Renewals())

    /// `newestTokenKey` is the newest token key that the node can open tokens with now.
    package init(
        log: any ReplicatedLog,
        barriers: LogBarriers,
        own: NodeRecord,
        newestTokenKey: @escaping @Sendable () -> UInt32
    ) {
        self.log = log
        self.barriers = barriers
        self.own = own
        self.newestTokenKey = newestTokenKey
        subject = .node(own.node)
        machine = Mutex(NodeNameMachine(own: own))
    }

    /// Waits until this process has the name: at once, or after the one of another folder has been silent.
    /// - Parameter onWait: Called before each pause: with the record that stands, or nil if the log does not answer.
    /// - Throws: ``NameIsTaken``, or `CancellationError`.
    package func take(onWait: @Sendable (NodeRecord?) -> Void) async throws {
        var order = NodeNameMachine.Order.readNow
        while true {
            switch order {
            case .serve: return
            case .giveWay(let other): throw NameIsTaken(own: own, other: other)
            case .read: onWait(machine.withLock { $0.watched })
            case .readNow, .write: break
            }
            order = try await perform(order)
        }
    }

    /// - Throws: ``NameIsTaken`` if another process has taken the name.
    package func check() throws {
        if let error = successor.withLock({ $0 }) { throw error }
    }

    /// The longest time without a renewal since the last call.
    ///
    /// After ``NodeNameMachine/silence`` the node dismisses its devices. Others stop to ring for a node that is silent for ``ClusterLimits/nodeSilence``, which is longer.
    package func takeLongestGap() -> Duration {
        renewals.withLock { renewals in
            defer { renewals.longestGap = .zero }
            return max(renewals.longestGap, .now - renewals.last)
        }
    }

    /// Renews the record until the task is cancelled.
    /// - Throws: ``NameIsTaken`` when another process has taken the name.
    package func keep() async throws {
        var order = NodeNameMachine.Order.serve(renewAfter: NodeNameMachine.renewal)
        while !Task.isCancelled {
            if case .giveWay(let other) = order {
                let error = NameIsTaken(own: own, other: other)
                successor.withLock { $0 = error }
                throw error
            }
            guard let next = try? await perform(order) else { return }
            order = next
        }
    }

    /// Says in the log that this node has left, once it holds no connection any more.
    package func leave() async {
        // A renewal may have been under way when this node stopped.
        if machine.withLock({ $0.held }) == nil { _ = await read() }
        guard let sequence = machine.withLock({ $0.held }) else { return }
        var record = own
        record.state = .left
        _ = await log.append(LogMessage(subject, payload: record.body, expectedSequence: sequence), to: .meta)
    }

    /// Performs an order.
    /// - Throws: `CancellationError`.
    private func perform(_ order: NodeNameMachine.Order) async throws -> NodeNameMachine.Order {
        switch order {
        case .write(let sequence):
            var record = own
            record.newestTokenKey = newestTokenKey()
            let begun = ContinuousClock.now
            let message = LogMessage(
                subject,
                payload: record.body,
                expectedSequence: sequence,
                answerTime: ClusterLimits.barrierAttempt
            )
            let outcome = await log.append(message, to: .meta)
            if case .stored = outcome {
                renewals.withLock { renewals in
                    renewals.longestGap = max(renewals.longestGap, .now - renewals.last)
                    renewals.last = begun
                }
            }
            return machine.withLock { $0.wrote(outcome) }
        case .serve(let time):
            try await Task.sleep(for: time)
            return machine.withLock { $0.renew() }
        case .read(let time):
            try await Task.sleep(for: time)
            return await read()
        case .readNow, .giveWay:
            try Task.checkCancellation()
            return await read()
        }
    }

    private func read() async -> NodeNameMachine.Order {
        let result = await withCheckedContinuation { continuation in
            barriers.read([subject], in: .meta) { continuation.resume(returning: $0) }
        }
        switch result {
        case .failure: return machine.withLock { $0.couldNotRead() }
        case .success(let entries):
            let entry = entries.last
            // A record of another version, or one that is set aside, is replaced like none.
            let record = entry.flatMap { $0.isTombstone ? nil : try? NodeRecord($0.payload) }
            let seen = NodeNameMachine.Seen(sequence: entry?.sequence ?? 0, record: record)
            return machine.withLock { $0.read(seen) }
        }
    }
}
