package import HeraldModel

/// What operators may ask of a running service: the admin API, the control socket and health stand on it.
///
/// Each throws ``AdminError`` where the operator can do something about it.
package protocol Administration: Sendable {
    /// What keeps the service from doing its work, in words; empty if nothing does.
    var problems: [String] { get }

    var status: ServiceStatus { get }

    /// The journal's lines that match, oldest first; the newest are kept if there are more than `limit`.
    func journal(_ question: JournalQuestion, limit: Int) async throws -> [JournalEntry]

    /// Broadcast channels, of one app in both environments or of all; at most `limit`.
    func channels(of bundle: Topic?, limit: Int) async throws -> [ChannelEntry]

    func credentials() async throws -> [CredentialEntry]

    /// Ends a credential; in effect on open connections when the call returns.
    func revokeCredential(_ id: String) async throws -> CredentialEntry

    func devices() async throws -> [DeviceEntry]

    /// Ends a device's certificate; its connection is closed when the call returns.
    func revokeDevice(_ id: String) async throws -> DeviceEntry

    /// Reads again what the trust folder holds.
    func reloadTrust() async throws

    /// The drills that are on, oldest first.
    var drills: [DrillEntry] { get }

    func startDrill(_ request: DrillRequest) throws -> DrillEntry

    func stopDrill(_ id: Int) throws -> DrillEntry

    func stopDrills() -> [DrillEntry]

    var clock: ClockReading { get }

    /// Moves the service's time.
    func advanceClock(by duration: Duration) async throws -> ClockReading
}

/// A request that only the control socket takes, since its answer may hold a private key.
package struct ControlRoute: Sendable {
    /// Below `/v1/control/`.
    package let name: String
    /// JSON in, JSON out.
    package let answer: @Sendable ([UInt8]) async throws -> [UInt8]

    package init(_ name: String, answer: @escaping @Sendable ([UInt8]) async throws -> [UInt8]) {
        self.name = name
        self.answer = answer
    }
}
