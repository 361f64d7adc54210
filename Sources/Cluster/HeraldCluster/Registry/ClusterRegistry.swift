package import HeraldMailbox
import HeraldModel
import Logging
import NIOCore
import Synchronization

/// The registry of a cluster: devices, apps, registrations and sessions, as records of the log.
///
/// All but the sessions are in memory too, as of the sequence of each record: the node follows the log. A change of a record
/// is a compare-and-set on what this node knows of it; what another node changed meanwhile is read, and the change is made on
/// that.
package final class ClusterRegistry: Sendable {
    /// A record that changes one after another.
    enum Key: Hashable, Sendable {
        case name(DeviceID)
        case device(DeviceNumber)
        case registrations(DeviceNumber)
        case app(App)
    }

    let context: ClusterContext
    let numbers: ClusterNumbers
    let operations = KeyedOperations<Key>()
    let contents = Mutex(RegistryContents())
    let reports = OrderedReports()
    private let followers = LogFollowers()
    /// That of the registrations of each partition.
    private let freshness: [Freshness]
    /// The reason why a record cannot be read.
    let failure = Mutex<RecordError?>(nil)

    init(_ context: ClusterContext, incarnation: UInt32) {
        self.context = context
        numbers = ClusterNumbers(incarnation: incarnation, changes: context.changes)
        freshness = context.partitions.all.map { _ in Freshness() }
    }

    // MARK: - Following

    /// Loads everything and follows what comes, before any other call; after a failure it may be called again.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    package func start() async throws {
        let perPartition = context.partitions.all.flatMap { [LogStream.devices($0), .registrations($0)] }
        try await followers.start([.apps] + perPartition) { stream in
            context.follower(of: stream, freshness(of: stream)) { [self] in apply($0, of: stream) }
        }
        try check()
    }

    /// - Throws: ``RecordError`` if there is a record of another version.
    package func check() throws {
        if let error = failure.withLock({ $0 }) { throw error }
    }

    /// Ends the following.
    package func close() { followers.close() }

    /// The followers of the registry's streams.
    var activeFollowers: [LogFollower] { followers.all }

    /// Takes over everything that was stored in streams before this call, and reports it.
    ///
    /// A follower that has applied an entry has not reported it yet, if another thread reports at this moment.
    func catchUp(_ streams: [LogStream], _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        followers.catchUp(streams) { [reports] result in
            reports.afterwards { done(result) }
        }
    }

    /// Whether this node may be behind with the registrations of a device.
    func isBehind(_ device: DeviceNumber, at now: NIODeadline) -> Bool {
        freshness[context.partitions.partition(of: device).index].isOver(at: now)
    }

    private func freshness(of stream: LogStream) -> Freshness {
        if case .registrations(let partition) = stream { freshness[partition.index] } else { Freshness() }
    }

    /// Ends the waiting for a change after ``ClusterLimits/changeTime``: it may still be made, before the next one of its record.
    func bounded<Value: Sendable>(_ done: @escaping Done<Value>) -> Done<Value> {
        context.scheduler.bounded(within: ClusterLimits.changeTime, failing: RecordChangeFailure.unknown, done)
    }

    /// The streams of a part of the shared state that are of the registry.
    func streams(of part: SharedPart) -> [LogStream] {
        switch part {
        case .apps: [.apps]
        case .registrations(let device): [.apps, .registrations(context.partitions.partition(of: device))]
        case .allRegistrations: [.apps] + context.partitions.all.map { .registrations($0) }
        case .channels, .trust: []
        }
    }

    /// All devices, apps and registrations; with `reports`, changes from now on are reported.
    package func snapshot(reports: Bool = false) -> RegistrySnapshot {
        contents.withLock { contents in
            if reports { self.reports.collect() }
            return RegistrySnapshot(
                devices: contents.numbers.map { ($0, $1) },
                apps: contents.apps.values.compactMap(\.record),
                registrations: contents.registrations.values.flatMap { $0.record?.registrations ?? [] }
            )
        }
    }
}

/// Records of the log, own and others'.
///
/// A record counts only if its sequence is greater than that of what is known: a node hears of its own writes twice, and a
/// change that it reads may have been followed already.
extension ClusterRegistry {
    /// Applies what the follower of a stream reports.
    func apply(_ all: [LogEntry], of stream: LogStream) {
        let entries = all.filter { !$0.isSetAside }
        for entry in all where entry.isSetAside { restore(entry, of: stream) }
        switch stream {
        case .apps:
            for entry in entries {
                if entry.isTombstone {
                    guard let app = entry.subject.app else { continue }
                    take { $0.set(Versioned(sequence: entry.sequence), app) }
                } else if let record = record(of: entry, as: AppRecord.self) {
                    take { $0.set(Versioned(record, sequence: entry.sequence), record.app) }
                }
            }
        case .devices:
            for entry in entries where !entry.isTombstone {
                guard let device = record(of: entry, as: DeviceLogRecord.self) else { continue }
                take { $0.set(device, sequence: entry.sequence) }
            }
        case .registrations:
            for entry in entries where !entry.isTombstone {
                guard let registrations = record(of: entry, as: DeviceRegistrations.self) else { continue }
                take { $0.set(Versioned(registrations, sequence: entry.sequence), of: registrations.device) }
            }
        case .meta, .mailbox, .channels, .broadcasts, .trust: break
        }
        reports.report()
    }

    /// Writes a record again that somebody has overwritten, as far as this node knows it; of several nodes, one succeeds, and
    /// all follow it.
    ///
    /// A session is not in memory: the device begins a new one.
    private func restore(_ entry: LogEntry, of stream: LogStream) {
        switch stream {
        case .apps:
            guard let app = entry.subject.app else { return }
            let known = contents.withLock { $0.apps[app]?.record }
            context.changes.restore(known, over: entry, in: stream)
        case .devices:
            context.changes.restore(contents.withLock { $0.device(at: entry.subject) }, over: entry, in: stream)
        case .registrations:
            guard let device = entry.subject.registeredDevice else { return }
            let known = contents.withLock { $0.registrations[device]?.record }
            context.changes.restore(known, over: entry, in: stream)
        default: break
        }
    }

    /// Takes over what the log has; ``OrderedReports/report()`` or ``OrderedReports/afterwards(_:)`` follows.
    func take(_ body: (inout RegistryContents) -> [RegistryChange]) {
        // In the order of the changes, so under their lock.
        contents.withLock { reports.add(body(&$0)) }
    }

    /// The record of an entry; a damaged one is left out, with a line in the log of the service.
    private func record<Record: LogRecord>(of entry: LogEntry, as _: Record.Type) -> Record? {
        do throws(RecordError) {
            return try Record(entry.payload)
        } catch {
            if case .otherVersion = error { failure.withLock { $0 = error } }
            // As in SQLite: one damaged record does not keep the service from all others.
            context.logger.error(
                "left out a record of the cluster's log: \(error)",
                metadata: ["subject": "\(entry.subject)"]
            )
            return nil
        }
    }
}
