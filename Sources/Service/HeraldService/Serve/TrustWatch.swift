import CoreMetrics
import HeraldActivation
import HeraldCourier
import HeraldGateway
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
        _ = reload(nil)
        alarm.check()
    }

    @Sendable private func watchLedger() async {
        await renewal.check()
        _ = reload(await trust.readLedger())
    }

    /// Renews the server certificate now if it is due.
    func renewServerCertificate() async {
        await renewal.checkNow()
        _ = await reloadNow()
    }

    /// Reloads the folder now.
    /// - Throws: The first part whose last attempt failed; its present state stays in force.
    func reload() async throws {
        if let failure = await reloadNow().all.first { throw failure }
    }

    /// The failure of the last reload, for the operator.
    var warning: String? {
        reloads.failing.withLock { failing in
            failing.map { "trust could not be reloaded since \($0.since.rfc3339): \($0.error)" }
        }
    }

    private func reloadNow() async -> ReloadFailures {
        // The files do not wait for a ledger that another process has locked.
        _ = reload(nil)
        return reload(await trust.readLedger())
    }

    private func reload(_ ledger: TrustService.LedgerReading?) -> ReloadFailures {
        reloads.lock.withLock { _ in
            let change = trust.reload(ledger)
            follow(change)
            return change.failures
        }
    }

    private func follow(_ change: TrustService.Reloaded) {
        for failure in change.failures.new {
            logger.error("trust not reloaded; the present one stays in force", metadata: ["error": "\(failure)"])
        }
        let now = clock.now()
        reloads.failing.withLock { failing in
            failing = change.failures.all.first.map { ($0, failing?.since ?? now) }
        }
        reloads.gauge.record(change.failures.all.isEmpty ? 0 : 1)
        guard !change.isUnchanged else { return }
        logger.info("trust reloaded")
        if change.tokenKeys { courier.renewTokens() }
        guard !change.revocations.isEmpty || change.serverCertificate else { return }
        do {
            // New contexts have new ticket keys, so no TLS session from before a revocation resumes.
            let contexts = try ListenerContexts(trust.folder)
            gateway.replaceContext(contexts.providers)
            binaryGateway.replaceContexts(contexts.binary)
            courier.replaceContext(contexts.devices)
            activation.replaceContext(contexts.activation)
            console?.replaceContext(contexts.console)
        } catch {
            logger.error("the server certificate cannot be reloaded", metadata: ["error": "\(error)"])
        }
        gateway.reviewCertificates()
        binaryGateway.reviewCertificates()
        courier.recheck()
    }

    /// The state of reloads.
    private final class Reloads: Sendable {
        /// Held while a reload takes effect.
        let lock = Mutex(())
        let failing = Mutex<(error: TrustError, since: WallTime)?>(nil)
        let gauge = Gauge(label: MetricName.trustReloadFailed)
    }
}
