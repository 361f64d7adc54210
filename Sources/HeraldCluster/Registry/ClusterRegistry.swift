package import HeraldMailbox
import HeraldModel
package import Logging
import Synchronization

/// The registry of a cluster: devices, apps, registrations and sessions, as records of the log.
///
/// All but the sessions are in memory too, as of the sequence of each record: the node follows the log. A change of a record
/// is a compare-and-set on what this node knows of it; what another node changed meanwhile is read, and the change is made on
/// that.
package final class ClusterRegistry: Sendable {
    /// A device, without its session.
    struct KnownDevice: Sendable {
        let id: DeviceID
        var isSavingPower: Bool
        /// The fence of the connection that owns its session.
        var fence: UInt64
        /// The sequence of its record.
        var sequence: UInt64
    }

    struct Contents: Sendable {
        var numbers: [DeviceID: DeviceNumber] = [:]
        var devices: [DeviceNumber: KnownDevice] = [:]
        var appNames: [AppNumber: App] = [:]
        /// Forgotten apps too, with the sequence of their removal.
        var apps: [App: Versioned<AppRecord>] = [:]
        var registrations: [DeviceNumber: Versioned<DeviceRegistrations>] = [:]
        /// The feedback list by app.
        var feedback: [AppNumber: [Slot: FeedbackRecord]] = [:]
    }

    /// A record that changes one after another.
    enum Key: Hashable, Sendable {
        case name(DeviceID)
        case device(DeviceNumber)
        case registrations(DeviceNumber)
        case app(App)
    }

    let partitions: Partitions
    let numbers: ClusterNumbers
    let changes: RecordChanges
    let logger: Logger
    let operations = KeyedOperations<Key>()
    let contents = Mutex(Contents())
    let reports = OrderedReports()
    let followers = Mutex<[LogStream: LogFollower]>([:])
    /// The reason why a record cannot be read.
    let failure = Mutex<RecordError?>(nil)
    private let makeFollower: MakeFollower

    /// Makes a follower of a stream.
    package typealias MakeFollower =
        @Sendable (LogStream, _ apply: @escaping @Sendable ([LogEntry]) -> Void) -> LogFollower

    /// - Parameters:
    ///   - partitions: The partitions of the cluster.
    ///   - numbers: Hands out numbers.
    ///   - changes: Writes and reads records.
    ///   - logger: Gets damaged records.
    ///   - makeFollower: Makes the followers of the registry's streams.
    package init(
        partitions: Partitions,
        numbers: ClusterNumbers,
        changes: RecordChanges,
        logger: Logger,
        _ makeFollower: @escaping MakeFollower
    ) {
        self.partitions = partitions
        self.numbers = numbers
        self.changes = changes
        self.logger = logger
        self.makeFollower = makeFollower
    }

    // MARK: - Following

    /// Loads everything and follows what comes, before any other call; after a failure it may be called again.
    /// - Throws: ``LogFailure`` if the log cannot be read, ``RecordError`` for a record of another version.
    package func start() async throws {
        let followers = followers.withLock { followers in
            if followers.isEmpty {
                let perPartition = partitions.all.flatMap { [LogStream.devices($0), .registrations($0)] }
                for stream in [.apps] + perPartition {
                    followers[stream] = makeFollower(stream) { [self] in apply($0, of: stream) }
                }
            }
            return followers
        }
        try await withThrowingTaskGroup { group in
            for follower in followers.values { group.addTask { try await follower.start() } }
            try await group.waitForAll()
        }
        try check()
    }

    /// - Throws: ``RecordError`` if there is a record of another version.
    package func check() throws {
        if let error = failure.withLock({ $0 }) { throw error }
    }

    /// Ends the following.
    package func close() {
        let followers = followers.withLock { followers in
            defer { followers = [:] }
            return followers
        }
        for follower in followers.values { follower.cancel() }
    }

    /// Takes over everything that was stored in streams before this call.
    func catchUp(_ streams: [LogStream], _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let followers = followers.withLock { followers in streams.compactMap { followers[$0] } }
        LogFollower.catchUp(followers) { done($0.mapError { $0 as any Error }) }
    }

    /// The streams of a part of the shared state that are of the registry.
    func streams(of part: SharedPart) -> [LogStream] {
        switch part {
        case .apps: [.apps]
        case .registrations(let device): [.apps, .registrations(partitions.partition(of: device))]
        case .allRegistrations: [.apps] + partitions.all.map { .registrations($0) }
        case .channels: []
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
