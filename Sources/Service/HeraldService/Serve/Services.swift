import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldStores
import ServiceLifecycle

// MARK: - The parts as services of one group
//
// A group stops its services in the reverse order of their start: the listeners close before the post office, and the store
// last.

/// Closes the store when everything else has stopped; ends the process if the store has failed.
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
                // The group stops on cancellation too.
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

/// Leaves the cluster when everything that stores has stopped.
struct ClusterService: Service {
    let node: ClusterNode
    let postOffice: PostOffice

    func run() async throws {
        try await node.run { postOffice.dismiss(.shuttingDown) }
    }
}

/// Bounds the time in which a node that stops waits for the servers: the grace period for all parts, then ``leaveTime``.
struct ClusterStopLimit: Service {
    /// The time after the grace period in which the node may still say that it leaves.
    static let leaveTime = Duration.seconds(2)

    let node: ClusterNode
    let gracePeriod: Duration

    func run() async throws {
        // The group stops on cancellation too.
        try? await gracefulShutdown()
        node.abandon(after: gracePeriod + Self.leaveTime)
    }
}

/// Notices that the data folder was deleted or moved.
struct StoreFileWatch: Service {
    let store: SQLiteStore

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                store.checkFiles()
                try? await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}

struct PostOfficeService: Service {
    let postOffice: PostOffice

    func run() async throws {
        await cancelWhenGracefulShutdown { await postOffice.run() }
    }
}

struct ChannelUpkeepService: Service {
    let channels: ChannelService

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

/// The listeners for providers.
///
/// They stop together, because the binary listeners hand connections over to the gateway.
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

/// Ends drills whose time is over, and reminds of the others.
struct DrillWatch: Service {
    let drills: DrillService
    /// The drills of the cluster; nil for a service of one node.
    let cluster: ClusterDrills?

    func run() async throws {
        await cancelWhenGracefulShutdown { await drills.run() }
        cluster?.close()
    }
}

/// Ends catching whose time is over, reminds of it, and ends the console's waits when the service stops.
struct CatchWatch: Service {
    let catcher: CatchService

    func run() async throws {
        await cancelWhenGracefulShutdown { await catcher.run() }
    }
}
