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
    private let reloads = Reloads()

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
        reloads.lock.withLock { refused in
            let change = trust.reload(ledger)
            for failure in change.failures.new {
                logger.error("trust not reloaded; the present one stays in force", metadata: ["error": "\(failure)"])
            }
            if change.authorities { reloads.authorities.store(true, ordering: .relaxed) }
            if !change.isUnchanged { follow(change, &refused) }
            let failure = change.failures.all.first ?? refused
            let now = clock.now()
            reloads.failing.withLock { failing in failing = failure.map { ($0, failing?.since ?? now) } }
            reloads.gauge.record(failure == nil ? 0 : 1)
        }
    }

    /// Applies a change; `refused` is the reason why TLS does not take the server certificate that was read last.
    private func follow(_ change: TrustService.Reloaded, _ refused: inout TrustError?) {
        logger.info("trust reloaded")
        if change.tokenKeys { courier.renewTokens() }
        if change.announcement { courier.announce() }
        guard !change.revocations.isEmpty || change.serverCertificate || change.authorities else { return }
        let path = trust.folder.layout.server
        do {
            if change.serverCertificate {
                let (server, now) = (try trust.folder.serverCertificate(), clock.now())
                guard server.begins <= now, now < server.expires else {
                    let term = "from \(server.begins.rfc3339) to \(server.expires.rfc3339)"
                    throw TrustError(.damaged, "\(path) has a certificate that is not valid now, but \(term)")
                }
            }
            // New contexts have new ticket keys, so no TLS session from before a revocation resumes.
            let contexts = try ListenerContexts(trust.folder)
            gateway.replaceContext(contexts.providers)
            binaryGateway.replaceContexts(contexts.binary)
            courier.replaceContext(contexts.devices)
            activation.replaceContext(contexts.activation)
            console?.replaceContext(contexts.console)
            refused = nil
        } catch {
            let fault =
                error as? TrustError ?? TrustError(.damaged, "\(path) cannot be used: \(TLSFault.words(for: error))")
            refused = fault
            logger.error("the server certificate cannot be reloaded", metadata: ["error": "\(fault)"])
        }
        gateway.reviewCertificates()
        binaryGateway.reviewCertificates()
        courier.recheck()
    }

    /// Tells devices of a changed `ca.pem`.
    private func announceAuthorities() async {
        guard reloads.authorities.exchange(false, ordering: .relaxed) else { return }
        do {
            try await trust.folder.announcements.followAuthorities(now: clock.now())
        } catch {
            logger.error("the authorities are not announced to devices", metadata: ["error": "\(error)"])
        }
    }

    /// The state of reloads.
    private final class Reloads: Sendable {
        /// Held while a reload takes effect; has the reason why TLS does not take the server certificate.
        let lock = Mutex<TrustError?>(nil)
        /// Whether `ca.pem` has changed since devices were told.
        let authorities = Atomic(false)
        let failing = Mutex<(error: TrustError, since: WallTime)?>(nil)
        let gauge = Gauge(label: MetricName.trustReloadFailed)
    }
}
