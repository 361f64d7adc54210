import CoreMetrics
import HeraldActivation
import HeraldCourier
import HeraldGateway
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWeb
import Logging
import ServiceLifecycle
import Synchronization

/// Reloads the trust folder every second, on SIGHUP and on command, and applies changes to the listeners.
struct TrustWatch: Service {
    let trust: TrustService
    let gateway: Gateway
    let binaryGateway: BinaryGateway
    let courier: Courier
    let activation: Activation
    /// TLS of the console's port; nil if that is plain HTTP.
    let console: WebTLS?
    let alarm: RevocationAlarm
    let clock: any WallClock
    let logger: Logger
    private let renewal: CertificateRenewal
    /// Timer, SIGHUP and commands run on different threads.
    ///
    /// A reload must not overtake an earlier one.
    private let reloads: Reloads

    init(
        trust: TrustService,
        gateway: Gateway,
        binaryGateway: BinaryGateway,
        courier: Courier,
        activation: Activation,
        console: WebTLS?,
        alarm: RevocationAlarm,
        clock: any WallClock,
        logger: Logger
    ) {
        self.trust = trust
        self.gateway = gateway
        self.binaryGateway = binaryGateway
        self.courier = courier
        self.activation = activation
        self.console = console
        self.alarm = alarm
        self.clock = clock
        self.logger = logger
        renewal = CertificateRenewal(trust.folder, clock: clock, logger: logger)
        reloads = Reloads(try? trust.folder.serverCertificate())
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            // A revocation list takes effect within a second also while the ledger is locked, for ten seconds at a time.
            await IndependentLoops.run(pause: .seconds(1), [watchFiles, watchLedger])
        }
    }

    @Sendable private func watchFiles() async {
        reload(nil)
        alarm.check()
    }

    @Sendable private func watchLedger() async {
        await renewal.check()
        await announceAuthorities()
        reload(await trust.readLedger())
    }

    /// Renews the server certificate now if it is due.
    func renewServerCertificate() async {
        await renewal.checkNow()
        await reloadNow()
    }

    /// Reloads the folder now.
    /// - Throws: The first part whose last attempt failed; its present state stays in force.
    func reload() async throws {
        await reloadNow()
        if let failure = reloads.failing.withLock({ $0?.error }) { throw failure }
    }

    /// The failure of the last reload, for the operator.
    var warning: String? {
        reloads.failing.withLock { failing in
            failing.map { "trust could not be reloaded since \($0.since.rfc3339): \($0.error)" }
        }
    }

    private func reloadNow() async {
        // The files do not wait for a ledger that another process has locked.
        reload(nil)
        reload(await trust.readLedger())
    }

    private func reload(_ ledger: TrustService.LedgerReading?) {
        reloads.lock.withLock { state in
            let change = trust.reload(ledger)
            for failure in change.failures.new {
                logger.error("trust not reloaded; the present one stays in force", metadata: ["error": "\(failure)"])
            }
            if change.authorities { reloads.authorities.store(true, ordering: .relaxed) }
            if !change.isUnchanged { logger.info("trust reloaded") }
            if change.tokenKeys { courier.renewTokens() }
            if change.announcement { courier.announce() }
            follow(change, &state)
            let failure = change.failures.all.first ?? state.refused
            let now = clock.now()
            reloads.failing.withLock { failing in failing = failure.map { ($0, failing?.since ?? now) } }
            reloads.gauge.record(failure == nil ? 0 : 1)
        }
    }

    /// Gives the listeners new contexts, if there is a reason.
    private func follow(_ change: TrustService.Reloaded, _ state: inout Reloads.State) {
        let isChanged = !change.revocations.isEmpty || change.authorities
        var contexts: ListenerContexts?
        // A refused certificate is read again every second, as it may become valid.
        if change.serverCertificate || state.refused != nil {
            do {
                let server = try usableServerCertificate()
                contexts = try ListenerContexts(trust.folder, server)
                (state.server, state.refused) = (server, nil)
            } catch {
                refuse(error, &state)
            }
        }
        if contexts == nil, isChanged {
            do {
                contexts = try ListenerContexts(trust.folder, state.server ?? trust.folder.serverCertificate())
            } catch {
                refuse(error, &state)
            }
        }
        if let contexts {
            // New contexts have new ticket keys, so no TLS session from before a revocation resumes.
            gateway.replaceContext(contexts.providers)
            binaryGateway.replaceContexts(contexts.binary)
            courier.replaceContext(contexts.devices)
            activation.replaceContext(contexts.activation)
            console?.replaceContext(contexts.console)
        }
        guard isChanged || contexts != nil else { return }
        gateway.reviewCertificates()
        binaryGateway.reviewCertificates()
        courier.recheck()
    }

    /// The certificate in `server.pem`.
    /// - Throws: ``TrustError`` if it cannot be read, or is not valid now.
    private func usableServerCertificate() throws -> ServerCertificate {
        let (server, now) = (try trust.folder.serverCertificate(), clock.now())
        guard server.begins <= now, now < server.expires else {
            let term = "from \(server.begins.rfc3339) to \(server.expires.rfc3339)"
            let path = trust.folder.layout.server
            throw TrustError(.damaged, "\(path) has a certificate that is not valid now, but \(term)")
        }
        return server
    }

    private func refuse(_ error: any Error, _ state: inout Reloads.State) {
        let words = "\(trust.folder.layout.server) cannot be used: \(TLSFault.words(for: error))"
        let fault = error as? TrustError ?? TrustError(.damaged, words)
        if fault != state.refused {
            logger.error("the server certificate cannot be reloaded", metadata: ["error": "\(fault)"])
        }
        state.refused = fault
    }

    /// Tells devices of a changed `ca.pem`.
    private func announceAuthorities() async {
        guard reloads.authorities.exchange(false, ordering: .relaxed) else { return }
        do {
            try await trust.folder.announcements.followAuthorities(now: clock.now())
            reloads.unannounced.withLock { $0 = nil }
        } catch {
            // A full disk gets space, and the certificate follows its authority. A key that comes needs a restart.
            let repeats = (error as? TrustError)?.code != .noSigningKey
            if repeats { reloads.authorities.store(true, ordering: .relaxed) }
            let isNew = reloads.unannounced.withLock { former in
                defer { former = "\(error)" }
                return former != "\(error)"
            }
            guard isNew || !repeats else { return }
            logger.error("the authorities are not announced to devices", metadata: ["error": "\(error)"])
        }
    }

    /// The state of reloads.
    private final class Reloads: Sendable {
        struct State {
            /// The certificate in use.
            var server: ServerCertificate?
            /// Why that in the file is not in use; nil if it is.
            var refused: TrustError?
        }

        /// Held while a reload takes effect.
        let lock: Mutex<State>
        /// Whether `ca.pem` has changed since devices were told.
        let authorities = Atomic(false)
        /// The error of the last attempt to tell them.
        let unannounced = Mutex<String?>(nil)
        let failing = Mutex<(error: TrustError, since: WallTime)?>(nil)
        let gauge = Gauge(label: MetricName.trustReloadFailed)

        init(_ server: ServerCertificate?) {
            lock = Mutex(State(server: server))
        }
    }
}
