public import HeraldModel
import NIOCore
import NIOSSL
import Synchronization

/// A device's connection to the service: MQTT 5 over mutual TLS, held for as long as ``run(_:)`` runs.
///
/// 1. Connects, registers its apps, and reports their device tokens.
/// 2. Reports each notification, and acknowledges it when the handler has returned. One that it has reported before, and
///    whose acknowledgement was lost, is acknowledged again and not reported.
/// 3. Tests a silent connection, and one that may have died while the machine slept or the network changed.
/// 4. Connects again after one that ended: soon at first, then less and less often, never more than so often in an hour,
///    and never at the same moment as every other device.
public final class DeviceClient: DeviceLine {
    let configuration: DeviceConfiguration
    private let state: Mutex<State>

    /// What the run and everybody else share.
    private struct State {
        /// For the connections to come.
        var context: NIOSSLContext
        var memory: DeviceMemory
        var news = LineNews()
        /// Where the run hears of news; nil if nobody runs.
        var inputs: AsyncStream<LineInput>.Continuation?
        /// The connection that is there.
        var watch: LineWatch?
    }

    /// Makes a client; connects when it runs.
    /// - Parameter configuration: Where to, as whom, for which apps.
    /// - Throws: ``DeviceError/Code/badAuthority``, ``DeviceError/Code/badIdentity``.
    public init(_ configuration: DeviceConfiguration) throws {
        self.configuration = configuration
        let context = try DeviceClient.context(configuration, configuration.credential)
        state = Mutex(State(context: context, memory: DeviceMemory(apps: configuration.apps)))
    }

    /// Connects with another certificate of the same device from the next connection on; the present one stays as it is.
    /// - Parameter credential: The device's next certificate and key.
    /// - Throws: ``DeviceError/Code/badIdentity`` for another device's, ``DeviceError/Code/badAuthority``.
    public func replaceCredential(_ credential: DeviceCredential) throws {
        guard credential.id == configuration.credential.id else {
            throw DeviceError(.badIdentity, "the certificate is another device's")
        }
        let context = try DeviceClient.context(configuration, credential)
        state.withLock { $0.context = context }
    }

    /// TLS of the next connection.
    var context: NIOSSLContext { state.withLock { $0.context } }

    private static func context(
        _ configuration: DeviceConfiguration,
        _ credential: DeviceCredential
    ) throws -> NIOSSLContext {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.certificateChain = credential.chain.map { .certificate($0) }
        tls.privateKey = .privateKey(credential.key)
        // A dead peer does not say good-bye.
        tls.shutdownTimeout = .seconds(1)
        if let pem = configuration.authorities {
            guard let authorities = try? NIOSSLCertificate.fromPEMBytes(pem), !authorities.isEmpty else {
                throw DeviceError(.badAuthority, "the authority's file holds no certificate in PEM")
            }
            tls.trustRoots = .certificates(authorities)
        }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            throw DeviceError(.badIdentity, "certificate and private key do not belong together")
        }
    }

    // What a device wishes.

    /// Registers an app, now and on each connect.
    public func install(_ app: DeviceApp) {
        wish { $0.install(app) }
    }

    /// Says which device token an app holds from an earlier run: it is presented with the app on each connect.
    public func present(_ token: DeviceToken, for topic: Topic) {
        withMemory { $0.hold(token, for: topic) }
    }

    /// Removes an app: its device token is dead for ever.
    public func remove(_ topic: Topic, in environment: PushEnvironment?) {
        wish { $0.remove(topic, in: environment) }
    }

    /// Says whether the user wants an app's notifications.
    public func setEnabled(_ enabled: Bool, for topic: Topic) {
        wish { $0.setEnabled(enabled, for: topic) }
    }

    /// Says whether the device saves power.
    public func setSaving(_ saving: Bool) {
        wish { $0.setSaving(saving) }
    }

    /// Loses the network, or has it again.
    public func setNetwork(_ isOn: Bool) {
        state.withLock { $0.memory.hasNetwork = isOn }
        // At once, whatever the run is busy with.
        if !isOn { state.withLock { $0.watch }?.close(DeviceClient.isOffline) }
        note { $0.isSwitched = true }
    }

    static let isOffline = "the network is switched off"

    /// What has been reported: to be kept, so that a later client does not report it again.
    public var seen: SeenNotifications {
        state.withLock { $0.memory.seen }
    }

    /// Takes what an earlier client has reported; before the run.
    public func remember(_ seen: SeenNotifications) {
        state.withLock { $0.memory.seen = seen }
    }

    private func wish(_ change: (inout DeviceMemory) -> Void) {
        state.withLock { change(&$0.memory) }
        note { $0.hasWish = true }
    }

    /// Tells the run that something is new; what it has not looked at yet is not told twice.
    func note(_ change: (inout LineNews) -> Void) {
        let inputs = state.withLock { state in
            let isTold = !state.news.isEmpty
            change(&state.news)
            return isTold ? nil : state.inputs
        }
        inputs?.yield(.news)
    }

    // For the run.

    func takeNews() -> LineNews {
        state.withLock { state in
            defer { state.news = LineNews() }
            return state.news
        }
    }

    func withMemory<Result: Sendable>(_ body: (inout DeviceMemory) -> Result) -> Result {
        state.withLock { body(&$0.memory) }
    }

    func setWatch(_ watch: LineWatch?) {
        state.withLock { $0.watch = watch }
    }

    /// Stays connected until the task is cancelled, or the service refuses the device for good.
    /// - Parameter handle: Called with one event at a time. What it throws ends the run.
    /// - Throws: ``DeviceError/Code/refused``, ``DeviceError/Code/busy``, `CancellationError`, or what `handle` throws.
    public func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        let (stream, inputs) = AsyncStream.makeStream(of: LineInput.self)
        let isFirst = state.withLock { state in
            guard state.inputs == nil else { return false }
            state.inputs = inputs
            state.news = LineNews()
            return true
        }
        guard isFirst else { throw DeviceError(.busy, "the client runs already") }
        defer {
            inputs.finish()
            state.withLock { $0.inputs = nil }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { await NetworkWatch.run { self.note { $0.hasNetworkChange = true } } }
            var run = LineRun(self, stream.makeAsyncIterator(), inputs)
            try await run.run(handle)
        }
    }
}

/// What is new since the run looked last.
struct LineNews: Hashable, Sendable {
    /// Something is wished.
    var hasWish = false
    /// The network was switched off or on.
    var isSwitched = false
    /// An address or an interface has changed.
    var hasNetworkChange = false
    /// It is time to say again what the service could not do.
    var isTimeToRepeat = false

    var isEmpty: Bool { self == LineNews() }
}

/// What the run of a client waits for.
///
/// The number is that of the attempt that it belongs to.
enum LineInput: Sendable {
    case news
    case opened(Int, OpenLine)
    case bytes(Int, ByteBuffer)
    case closed(Int, DeviceSession.End)
    /// Connecting took too long.
    case late(Int)
    case pauseOver(Int)
}

/// A connection whose TLS may still be shaking hands.
struct OpenLine: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    let watch: LineWatch
}
