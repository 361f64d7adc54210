import HeraldJSON
package import HeraldModel

/// State of the service.
package struct ServiceStatus: Codable, SnakeCased, Hashable, Sendable {
    /// First and last time in the journal.
    package struct Journal: Codable, Hashable, Sendable {
        package let first: String
        package let last: String

        package init(first: WallTime, last: WallTime) {
            self.first = first.rfc3339
            self.last = last.rfc3339
        }
    }

    package let version: String
    package let pid: Int32
    package let started: String
    /// The service's time.
    package let now: String
    /// The first configured name of the host.
    package var hostname: String?
    /// The environments that have apps.
    package var environments: [PushEnvironment] = []
    /// Extent of the console.
    package var mode: ConsoleMode = .full
    package var devicesConnected = 0
    package var notificationsWaiting = 0
    /// Active drills of this node, oldest first.
    package var drills: [DrillEntry] = []
    /// The payloads that are caught; nil if none are.
    package var catching: CatchingState?
    /// How far an operator has moved the clock; nil if not at all.
    package var clockMovedSeconds: Int64?
    /// Free space on the disk of the data folder; nil if the system does not say.
    package var diskFreeBytes: Int?
    /// Nil if this node's journal is empty, or cannot be read.
    package var journal: Journal?

    package init(version: String, pid: Int32, started: WallTime, now: WallTime) {
        self.version = version
        self.pid = pid
        self.started = started.rfc3339
        self.now = now.rfc3339
    }

    /// The members that rarely change, and that people must know.
    package struct Signs: Hashable, Sendable {
        let environments: [PushEnvironment]
        let drills: [Int]
        let caught: CatchScope?
        let isClockMoved: Bool
    }

    package var signs: Signs {
        Signs(
            environments: environments,
            drills: drills.map(\.id),
            caught: catching?.topics,
            isClockMoved: clockMovedSeconds != nil
        )
    }
}
