package import HeraldModel
package import Logging
import ServiceLifecycle
import Synchronization

/// Sends the rows of the queue, and records their outcome.
///
/// Claim, send, write: a claim is durable before its row is sent, and contains the `apns-id` that every attempt uses. A
/// relay that takes a row over looks that identifier up in the service's journal. Claims and outcomes are written in
/// batches, and no transaction is open while a notification is sent.
package final class Relay: Service {
    let context: RelayContext
    let rows: RowSender
    let monitor: QueueMonitor
    private let deadTokens: DeadTokenMarker
    private let isStopping = Mutex(false)

    /// `owner` identifies this relay among those that share the queue.
    package init(
        configuration: RelayConfiguration,
        routes: RouteList,
        store: RelayStore,
        owner: String,
        clock: any WallClock,
        logger: Logger
    ) {
        context = RelayContext(
            configuration: configuration,
            store: store,
            owner: owner,
            clock: clock,
            logger: logger,
            health: RelayHealth(limit: configuration.unhealthyAge),
            routes: routes
        )
        deadTokens = DeadTokenMarker(context)
        rows = RowSender(context, deadTokens)
        monitor = QueueMonitor(context: context, deadTokens: deadTokens)
    }

    /// Replaces the apps; those that have not changed keep their connections.
    /// - Throws: If a credential is unusable. Then nothing changes.
    package func replace(_ apps: [RelayApp]) throws {
        try context.routes.replace(apps)
        context.signal.notify()
    }

    /// Runs until a graceful shutdown; then sends no further row, and writes the outcome of those in flight.
    package func run() async throws {
        // Breakers first, before an answer comes. If the database does not work now, no token can be marked either.
        await monitor.checkOnce()
        let (context, pump) = (context, QueuePump(context, rows))
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    let changes = context.store.changes { reason in
                        context.logger.notice(
                            "the queue is queried every second, since the database does not report new rows",
                            metadata: ["reason": "\(reason)"]
                        )
                    }
                    for await _ in changes { context.signal.notify() }
                }
                group.addTask { [monitor] in await monitor.run() }
                group.addTask { [deadTokens] in await FeedbackPoll(context: context, deadTokens: deadTokens).run() }
                group.addTask { await JournalMonitor(context: context).run() }
                group.addTask { await RowRetention(context: context).run() }
                await pump.run { [self] in isStopping.withLock { $0 } }
                group.cancelAll()
            }
        } onGracefulShutdown: { [self] in
            isStopping.withLock { $0 = true }
            context.signal.notify()
        }
        for route in context.routes.all { await route.sender.shutdown() }
        await context.store.close()
    }
}
