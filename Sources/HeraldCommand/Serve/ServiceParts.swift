import HeraldActivation
import HeraldCourier
import HeraldDoor
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import ServiceLifecycle
import Synchronization

// The parts as services of one group. A group stops its services in the reverse order of their start, so the doors close
// before the post office does, and the store last, when nobody has anything left to store.

/// Keeps the store open until everything else has stopped; ends the process if the store has failed.
struct StoreService: Service {
    let store: SQLiteStore
    let failure: AsyncStream<StoreError>

    func run() async throws {
        let error: StoreError? = await withTaskGroup(of: StoreError?.self) { group in
            group.addTask { [failure] in
                for await error in failure { return error }
                return nil
            }
            group.addTask {
                // Cancelled is as good: the group stops either way.
                try? await gracefulShutdown()
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
        await store.close()
        if let error { throw error }
    }
}

struct PostOfficeService: Service {
    let postOffice: PostOffice

    func run() async throws {
        await cancelWhenGracefulShutdown { await postOffice.run() }
    }
}

struct ChannelService: Service {
    let channels: ChannelOffice

    func run() async throws {
        await cancelWhenGracefulShutdown { await channels.run() }
    }
}

struct CourierService: Service {
    let courier: Courier

    func run() async throws {
        await withTaskGroup { group in
            group.addTask { await courier.run() }
            try? await gracefulShutdown()
            await courier.stop()
            await group.waitForAll()
        }
    }
}

/// All doors for providers; they stop together, since the binary doors hand connections over to the gateway.
struct GatewayService: Service {
    let gateway: Gateway
    let binaryGateway: BinaryGateway

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskGroup { tasks in
                tasks.addTask { await gateway.run() }
                tasks.addTask { await binaryGateway.run() }
                await tasks.waitForAll()
            }
            await binaryGateway.close()
        } onGracefulShutdown: {
            gateway.beginShutdown()
            binaryGateway.beginShutdown()
        }
    }
}

/// Looks every second whether anything in the trust folder changed, and has the doors follow.
struct TrustWatch: Service {
    let trust: TrustOffice
    let gateway: Gateway
    let binaryGateway: BinaryGateway
    let courier: Courier
    let activation: Activation
    let alarm: RevocationAlarm
    let clock: any WallClock
    let logger: Logger
    /// The ticker, SIGHUP and commands come from different threads; what one of them has read must not be overtaken by
    /// what another read before.
    private let turn = Turn()

    init(
        trust: TrustOffice,
        gateway: Gateway,
        binaryGateway: BinaryGateway,
        courier: Courier,
        activation: Activation,
        alarm: RevocationAlarm,
        clock: any WallClock,
        logger: Logger
    ) {
        self.trust = trust
        self.gateway = gateway
        self.binaryGateway = binaryGateway
        self.courier = courier
        self.activation = activation
        self.alarm = alarm
        self.clock = clock
        self.logger = logger
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var renewal = CertificateRenewal(trust.folder, clock: clock, logger: logger)
            while true {
                alarm.look()
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
                renewal.look()
                _ = readAgain()
            }
        }
    }

    /// Sees to it now that the doors show a certificate that lasts, or that the log says that they will not.
    func renewServerCertificate() {
        var renewal = CertificateRenewal(trust.folder, clock: clock, logger: logger)
        renewal.look()
        _ = readAgain()
    }

    /// Reads the folder again, now.
    /// - Throws: What could not be read; the former state of it stays in force.
    func reload() throws {
        if let failure = readAgain().failures.first { throw failure }
    }

    private func readAgain() -> TrustOffice.Reloaded {
        turn.take {
            let change = trust.reload()
            follow(change)
            return change
        }
    }

    private func follow(_ change: TrustOffice.Reloaded) {
        for failure in change.failures {
            logger.error("trust not reloaded; what was read before stays in force", metadata: ["error": "\(failure)"])
        }
        guard !change.isUnchanged else { return }
        logger.info("trust reloaded")
        if change.tokenKeys { courier.renewTokens() }
        guard !change.revocations.isEmpty || change.serverCertificate else { return }
        do {
            // New contexts have new ticket keys: no session from before a revocation resumes.
            let contexts = try DoorContexts(trust.folder)
            gateway.replaceContext(contexts.providers)
            binaryGateway.replaceContexts(contexts.binary)
            courier.replaceContext(contexts.devices)
            activation.replaceContext(contexts.activation)
        } catch {
            logger.error("the server certificate cannot be read again", metadata: ["error": "\(error)"])
        }
        gateway.reviewCertificates()
        binaryGateway.reviewCertificates()
        courier.recheck()
    }

    /// One after the other.
    private final class Turn: Sendable {
        private let lock = Mutex(())

        func take<Outcome>(_ work: () -> Outcome) -> Outcome {
            lock.withLock { _ in work() }
        }
    }
}
