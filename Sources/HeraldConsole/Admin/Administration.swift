package import HeraldModel

/// Operations on a running service, for the admin API, the control socket and health.
///
/// They throw ``AdminError`` for errors that the operator can correct.
package protocol Administration: Sendable {
    /// Problems that keep the service from working, in words.
    var problems: [String] { get }

    /// Faults that do not keep the service from working, in words.
    var warnings: [String] { get }

    var status: ServiceStatus { get }

    /// Matching lines of the journal, oldest first; the newest ones if there are more than `limit`.
    ///
    /// In a cluster they are those of all nodes.
    func journal(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer

    /// Broadcast channels, of one app in both environments or of all; at most `limit`.
    func channels(of bundle: Topic?, limit: Int) async throws -> [ChannelEntry]

    /// The names of apps, by topic, of one topic or of all, only unused ones if that is asked for; then the topics that teams
    /// own and no app has yet; at most `limit`.
    func apps(of topic: Topic?, onlyUnused: Bool, limit: Int) async throws -> [AppEntry]

    /// Forgets the apps of a topic, in one environment or in both, if nothing uses them.
    /// - Returns: The forgotten apps.
    func forgetApp(_ topic: Topic, in environment: PushEnvironment?) async throws -> [AppEntry]

    func credentials() async throws -> [CredentialEntry]

    /// Revokes a credential, and applies it to open connections.
    ///
    /// If it could not be applied, the error says so, and a repetition gets it as well until the revocation is in force.
    func revokeCredential(_ id: String) async throws -> CredentialEntry

    func devices() async throws -> [DeviceEntry]

    /// Revokes a device's certificate, and closes its connection. Errors are those of ``revokeCredential(_:)``.
    func revokeDevice(_ id: String) async throws -> DeviceEntry

    /// Reads the trust folder again.
    func reloadTrust() async throws

    /// Active drills, oldest first.
    var drills: [DrillEntry] { get }

    func startDrill(_ request: DrillRequest) throws -> DrillEntry

    func stopDrill(_ id: Int) throws -> DrillEntry

    func stopDrills() -> [DrillEntry]

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
