package import HeraldModel

/// Operations on a running service, for the admin API, the control socket and health.
///
/// They throw ``AdminError`` for errors that the operator can correct.
package protocol Administration: FleetAdministration, ChannelAdministration {
    /// Problems that keep the service from working, in words.
    var problems: [String] { get }

    /// Faults that do not keep the service from working, in words.
    var warnings: [String] { get }

    /// The state of the service, without what must be read from the disk.
    var status: ServiceStatus { get }

    /// The state of the service.
    func fullStatus() async -> ServiceStatus

    /// Matching lines of the journal, oldest first; the newest ones if there are more than `limit`.
    ///
    /// In a cluster they are those of all nodes.
    func journal(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer

    /// Forgets the apps of a topic, in one environment or in both, if nothing uses them.
    /// - Returns: The forgotten apps.
    func forgetApp(_ topic: Topic, in environment: PushEnvironment?) async throws -> [AppEntry]

    /// Reads the trust folder again.
    func reloadTrust() async throws

    /// Active drills of this node, oldest first.
    var drills: [DrillEntry] { get }

    /// Active drills of all nodes, oldest first.
    func allDrills() async -> [DrillEntry]

    func startDrill(_ request: DrillRequest) async throws -> DrillEntry

    func renewDrill(_ id: Int) async throws -> DrillEntry

    func stopDrill(_ id: Int) async throws -> DrillEntry

    func stopDrills() async throws -> [DrillEntry]

    var clock: ClockReading { get }

    /// Moves the service's clock.
    func advanceClock(by duration: Duration) async throws -> ClockReading

    /// Accepts the machine's clock after a jump: what is expired by it expires.
    func acceptClock() async -> ClockReading
}

/// A request for the control socket only, because its answer may contain a private key.
package struct ControlRoute: Sendable {
    /// Path below `/v1/control/`.
    package let name: String
    /// JSON in, JSON out.
    package let answer: @Sendable ([UInt8]) async throws -> [UInt8]

    package init(_ name: String, answer: @escaping @Sendable ([UInt8]) async throws -> [UInt8]) {
        self.name = name
        self.answer = answer
    }
}
