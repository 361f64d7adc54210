import HeraldMailbox
import Synchronization

/// Reports changes to a sink in their order, from one thread at a time, and outside of all other locks.
///
/// A sink may write to the log, and a log may call back at once.
final class OrderedReports: Sendable {
    private enum Report: Sendable {
        case change(RegistryChange)
        /// The changes before it have been reported.
        case reached(@Sendable () -> Void)
    }

    private struct State {
        var isCollecting = false
        var sink: (any RegistrySink)?
        var changes: [Report] = []
        var isReporting = false
    }

    private let state = Mutex(State())

    /// Collects changes from now on.
    func collect() {
        state.withLock { state in
            state.isCollecting = true
            state.changes = []
        }
    }

    /// Reports the collected changes, and those to come.
    func begin(_ sink: any RegistrySink) {
        state.withLock { $0.sink = sink }
        report()
    }

    /// Adds changes; ``report()`` follows when no lock is held.
    func add(_ changes: [RegistryChange]) {
        guard !changes.isEmpty else { return }
        state.withLock { state in
            if state.isCollecting { state.changes += changes.map(Report.change) }
        }
    }

    /// Calls `body` when the changes before this call have been reported.
    func afterwards(_ body: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            // Without a sink nobody waits for the changes.
            guard state.sink != nil, !state.changes.isEmpty || state.isReporting else { return true }
            state.changes.append(.reached(body))
            return false
        }
        if isNow { body() } else { report() }
    }

    /// Reports what was added.
    func report() {
        while let (sink, reports) = next() {
            var changes: [RegistryChange] = []
            for report in reports {
                switch report {
                case .change(let change): changes.append(change)
                case .reached(let body):
                    if !changes.isEmpty { sink.apply(changes) }
                    changes = []
                    body()
                }
            }
            if !changes.isEmpty { sink.apply(changes) }
            state.withLock { $0.isReporting = false }
        }
    }

    private func next() -> (any RegistrySink, [Report])? {
        state.withLock { state in
            guard let sink = state.sink, !state.isReporting, !state.changes.isEmpty else { return nil }
            state.isReporting = true
            defer { state.changes = [] }
            return (sink, state.changes)
        }
    }
}
