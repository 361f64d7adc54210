import Synchronization

/// Makes this node the one that serves its cluster, and keeps it so: performs what ``ActiveNodeMachine`` decides.
package final class ActiveNode: Sendable {
    /// The error for a node beside another one.
    package struct OtherNodeServes: Error, Hashable, CustomStringConvertible {
        package let node: NodeName

        package var description: String {
            "the node \(node.text) serves this cluster, and only one may: stop it first, or wait for its end"
        }
    }

    private let log: any ReplicatedLog
    private let barriers: LogBarriers
    private let own: ActiveNodeRecord
    private let subject = LogSubject.meta("active")
    private let machine: Mutex<ActiveNodeMachine>
    private let successor = Mutex<OtherNodeServes?>(nil)
    private let renewed = Mutex(ContinuousClock.now)

    package init(log: any ReplicatedLog, barriers: LogBarriers, own: ActiveNodeRecord) {
        self.log = log
        self.barriers = barriers
        self.own = own
        machine = Mutex(ActiveNodeMachine(own: own))
    }

    /// Waits until this node may serve: at once, or after another one has been silent.
    /// - Parameter onWait: Called before each pause: with the node whose record stands, or nil if the log does not answer.
    /// - Throws: ``OtherNodeServes``, or `CancellationError`.
    package func take(onWait: @Sendable (NodeName?) -> Void) async throws {
        var order = ActiveNodeMachine.Order.readNow
        while true {
            switch order {
            case .serve: return
            case .giveWay(let other): throw OtherNodeServes(node: other.node)
            case .read: onWait(machine.withLock { $0.watched?.node })
            case .readNow, .write: break
            }
            order = try await perform(order)
        }
    }

    /// - Throws: ``OtherNodeServes`` if another node has taken over.
    package func check() throws {
        if let error = successor.withLock({ $0 }) { throw error }
    }

    /// The time since the record was renewed.
    ///
    /// After ``ActiveNodeMachine/silence``, another node may serve.
    package var timeSinceRenewal: Duration { renewed.withLock { .now - $0 } }

    /// Renews the record until the task is cancelled.
    /// - Throws: ``OtherNodeServes`` when another node has taken over.
    package func keep() async throws {
        var order = ActiveNodeMachine.Order.serve(renewAfter: ActiveNodeMachine.renewal)
        while !Task.isCancelled {
            if case .giveWay(let other) = order {
                let error = OtherNodeServes(node: other.node)
                successor.withLock { $0 = error }
                throw error
            }
            guard let next = try? await perform(order) else { return }
            order = next
        }
    }

    /// Takes the record away, so that the next node need not wait.
    package func release() async {
        // A renewal may have been under way when this node stopped.
        if machine.withLock({ $0.held }) == nil { _ = await read() }
        guard let sequence = machine.withLock({ $0.held }) else { return }
        _ = await append(.tombstone(subject, expecting: sequence))
    }

    /// Performs an order.
    /// - Throws: `CancellationError`.
    private func perform(_ order: ActiveNodeMachine.Order) async throws -> ActiveNodeMachine.Order {
        switch order {
        case .write(let sequence):
            let message = LogMessage(subject, payload: own.body, expectedSequence: sequence)
            let outcome = await append(message)
            if case .stored = outcome { renewed.withLock { $0 = .now } }
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

    private func read() async -> ActiveNodeMachine.Order {
        let result = await withCheckedContinuation { continuation in
            barriers.read([subject], in: .meta) { continuation.resume(returning: $0) }
        }
        switch result {
        case .failure: return machine.withLock { $0.couldNotRead() }
        case .success(let entries):
            let entry = entries.last
            // A record of another version is replaced like none.
            let record = entry.flatMap { $0.isTombstone ? nil : try? ActiveNodeRecord($0.payload) }
            let seen = ActiveNodeMachine.Seen(sequence: entry?.sequence ?? 0, record: record)
            return machine.withLock { $0.read(seen) }
        }
    }

    private func append(_ message: LogMessage) async -> AppendOutcome {
        await withCheckedContinuation { continuation in
            log.append(message, to: .meta) { continuation.resume(returning: $0) }
        }
    }
}
