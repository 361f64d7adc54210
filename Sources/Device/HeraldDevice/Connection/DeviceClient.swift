import HeraldIdentity
public import HeraldModel
import NIOCore
import NIOSSL
import Synchronization

/// A device's connection to the service: MQTT 5 over mutual TLS, kept open while ``run(_:)`` runs.
///
/// 1. Connects, registers its apps, and reports their device tokens.
/// 2. Reports each notification, and acknowledges it when the handler has returned. A duplicate, whose acknowledgement was
///    lost, is acknowledged again and not reported.
/// 3. Tests a silent connection, and any connection after sleep or a network change.
/// 4. Reconnects with exponential backoff and jitter, within a budget of attempts per hour.
public final class DeviceClient: ServiceConnection {
    let configuration: DeviceConfiguration
    private let state: Mutex<State>

    /// State that the run shares with callers.
    private struct State {
        /// TLS for the next connection, and the certificate in it.
        var context: NIOSSLContext
        var credential: DeviceCredential
        /// The authorities in it.
        var authorities: [UInt8]?
        /// The service's addresses for devices, the preferred one first.
        var addresses: [HostPort]
        var memory: DeviceMemory
        var changes = PendingChanges()
        /// The inputs of the run; nil while the client does not run.
        var inputs: AsyncStream<ConnectionInput>.Continuation?
        /// The open connection's watchdog.
        var watchdog: ConnectionWatchdog?
    }

    /// Makes a client; connects when it runs.
    /// - Parameter configuration: The server, identity and apps.
    /// - Throws: ``DeviceError/Code/badAuthority``, ``DeviceError/Code/badIdentity``.
    public init(_ configuration: DeviceConfiguration) throws {
        self.configuration = configuration
        let credential = configuration.credential
        // A machine may have no authorities of its own, so the folder's count from the beginning.
        let authorities: [UInt8]?
        do {
            authorities = try configuration.folder?.authorities() ?? configuration.authorities
        } catch {
            throw DeviceError(.badFolder, "\(error)")
        }
        state = Mutex(
            State(
                context: try DeviceClient.context(credential, authorities),
                credential: credential,
                authorities: authorities,
                addresses: [HostPort(host: configuration.host, port: configuration.port)],
                memory: DeviceMemory(apps: configuration.apps)
            )
        )
        try readFolder()
    }

    // MARK: - The service

    /// Takes addresses and authorities from the device's folder, which an announcement or a command may have changed.
    private func readFolder() throws {
        guard let folder = configuration.folder else { return }
        let (service, authorities): (DeviceFolder.Service, [UInt8])
        do {
            (service, authorities) = (try folder.service(), try folder.authorities())
        } catch {
            throw DeviceError(.badFolder, "\(error)")
        }
        try state.withLock { state in
            state.addresses = service.addresses.map { HostPort(host: $0.host, port: $0.port) }
            state.memory.announcement = service.announcement
            guard authorities != state.authorities else { return }
            state.context = try DeviceClient.context(state.credential, authorities)
            state.authorities = authorities
        }
    }

    /// Takes what the service announces; nil if it is nothing new.
    func take(_ announcement: String) -> DeviceEvent? {
        do {
            return try event(of: try configuration.folder?.take(announcement))
        } catch {
            return .announcementRefused(reason: "\(error)")
        }
    }

    /// Asks the service for its announcement, on connections that are not trusted.
    func askForAnnouncement() async throws -> DeviceEvent? {
        guard let folder = configuration.folder else { return nil }
        do {
            return try event(of: try await folder.refreshAnnouncement(timeout: configuration.connectTimeout))
        } catch let error as EnrollmentError {
            return .announcementRefused(reason: "\(error)")
        }
    }

    private func event(of newer: Announcement?) throws -> DeviceEvent? {
        // Also if a renewal has taken it meanwhile.
        try readFolder()
        guard let newer else { return nil }
        return .announced(addresses: addresses.map(\.description), authorities: newer.authorities.count)
    }

    /// The service's addresses for devices, the preferred one first.
    var addresses: [HostPort] { state.withLock { $0.addresses } }

    /// Uses another certificate of the same device from the next connection on.
    /// - Parameter credential: The device's next certificate and key.
    /// - Throws: ``DeviceError/Code/badIdentity`` for the certificate of another device, ``DeviceError/Code/badAuthority``.
    public func replaceCredential(_ credential: DeviceCredential) throws {
        guard credential.id == configuration.credential.id else {
            throw DeviceError(.badIdentity, "the certificate is another device's")
        }
        try state.withLock { state in
            state.context = try DeviceClient.context(credential, state.authorities)
            state.credential = credential
        }
    }

    /// Connects for one attempt, to the address of that place: counted from the preferred one, over and over.
    func connector(_ place: Int) -> DeviceConnector {
        // A folder that cannot be read now leaves what was read before.
        try? readFolder()
        return state.withLock { state in
            DeviceConnector(
                configuration: configuration,
                address: state.addresses[place % state.addresses.count],
                context: state.context,
                expires: state.credential.expires
            )
        }
    }

    /// The TLS context of the next connection.
    var context: NIOSSLContext { state.withLock { $0.context } }

    private static func context(
        _ credential: DeviceCredential,
        _ authorities: [UInt8]?
    ) throws -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.certificateChain = credential.chain.map { .certificate($0) }
        tls.privateKey = .privateKey(credential.key)
        // A dead peer sends no close_notify.
        tls.shutdownTimeout = .seconds(1)
        if let pem = authorities {
            do {
                tls.trustRoots = .certificates(try NIOSSLCertificate.authorities(pem))
            } catch {
                throw DeviceError(.badAuthority, "the authority's file cannot be used: \(error)")
            }
        }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            // Without authorities in the configuration, the system's count.
            if authorities == nil, (try? NIOSSLContext(configuration: .makeClientConfiguration())) == nil {
                throw DeviceError(
                    .badAuthority,
                    "this machine has no authorities to trust: install ca-certificates, or name the service's own (ca)"
                )
            }
            throw DeviceError(.badIdentity, "certificate and private key do not belong together")
        }
    }

    // MARK: - Requests

    /// Registers an app, now and on each connect.
    public func install(_ app: DeviceApp) {
        request { $0.install(app) }
    }

    /// Sets the device token that an app holds from an earlier run; it is presented with the app on each connect.
    public func present(_ token: DeviceToken, for topic: Topic) {
        withMemory { $0.hold(token, for: topic) }
    }

    /// Removes an app; its device token never works again.
    public func remove(_ topic: Topic, in environment: PushEnvironment?) {
        request { $0.remove(topic, in: environment) }
    }

    /// Sets whether the user wants an app's notifications.
    public func setEnabled(_ enabled: Bool, for topic: Topic) {
        request { $0.setEnabled(enabled, for: topic) }
    }

    /// Subscribes to a channel, now and on each connect.
    public func subscribe(to channel: DeviceChannel) {
        request { $0.subscribe(to: channel) }
    }

    /// Ends the subscription to a channel.
    public func unsubscribe(from channel: DeviceChannel) {
        request { $0.unsubscribe(from: channel) }
    }

    /// Sets whether the device saves power.
    public func setSaving(_ saving: Bool) {
        request { $0.setSaving(saving) }
    }

    /// Switches the network off or on.
    public func setNetwork(_ isOn: Bool) {
        state.withLock { $0.memory.hasNetwork = isOn }
        // At once, even if the run waits for the handler.
        if !isOn { state.withLock { $0.watchdog }?.close(DeviceClient.networkOff) }
        note { $0.hasNetworkSwitch = true }
    }

    static let networkOff = "the network is switched off"

    /// The notifications that were reported; keep them, so that a later client does not report them again.
    public var seen: SeenNotifications {
        state.withLock { $0.memory.seen }
    }

    /// Sets the notifications that an earlier client has reported; before the run.
    public func remember(_ seen: SeenNotifications) {
        state.withLock { $0.memory.seen = seen }
    }

    private func request(_ change: (inout DeviceMemory) -> Void) {
        state.withLock { change(&$0.memory) }
        note { $0.hasRequest = true }
    }

    /// Signals a change to the run, once until the run takes it.
    func note(_ change: (inout PendingChanges) -> Void) {
        let inputs = state.withLock { state in
            let isSignalled = !state.changes.isEmpty
            change(&state.changes)
            return isSignalled ? nil : state.inputs
        }
        inputs?.yield(.changes)
    }

    // MARK: - The run

    func takeChanges() -> PendingChanges {
        state.withLock { state in
            defer { state.changes = PendingChanges() }
            return state.changes
        }
    }

    func withMemory<Result: Sendable>(_ body: (inout DeviceMemory) -> Result) -> Result {
        state.withLock { body(&$0.memory) }
    }

    func setWatchdog(_ watchdog: ConnectionWatchdog?) {
        state.withLock { $0.watchdog = watchdog }
    }

    /// Stays connected until the task is cancelled, or the service refuses the device permanently.
    /// - Parameter handle: Called with one event at a time. An error that it throws ends the run.
    /// - Throws: ``DeviceError/Code/refused``, ``DeviceError/Code/dismissed``, ``DeviceError/Code/busy``, `CancellationError`,
    ///   or the error of `handle`.
    public func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        let (stream, inputs) = AsyncStream.makeStream(of: ConnectionInput.self)
        let isFirst = state.withLock { state in
            guard state.inputs == nil else { return false }
            state.inputs = inputs
            state.changes = PendingChanges()
            return true
        }
        guard isFirst else { throw DeviceError(.busy, "the client is already running") }
        defer {
            inputs.finish()
            state.withLock { $0.inputs = nil }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await NetworkWatch.run { self.note { $0.hasNetworkChange = true } } }
            var run = ReconnectLoop(self, stream.makeAsyncIterator(), inputs)
            try await run.run(handle)
        }
    }
}

/// Changes that the run has not taken yet.
struct PendingChanges: Hashable, Sendable {
    /// There are requests to send.
    var hasRequest = false
    /// The network was switched off or on.
    var hasNetworkSwitch = false
    /// An address or an interface has changed.
    var hasNetworkChange = false
    /// It is time to repeat failed requests.
    var isRetryDue = false

    var isEmpty: Bool { self == PendingChanges() }
}

/// An input of a client's run, with the number of the connection attempt that it belongs to.
enum ConnectionInput: Sendable {
    case changes
    case opened(Int, OpenConnection)
    case bytes(Int, ByteBuffer)
    case closed(Int, DeviceSession.End)
    case connectTimeout(Int)
    case pauseOver(Int)
}

/// A connection whose TLS handshake may not be finished.
struct OpenConnection: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    let watchdog: ConnectionWatchdog
}
