import HeraldModel
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Gives the service manager signs of life while every part of the process answers, and tells it what the process does.
///
/// A part that hangs ends the signs, and the manager restarts the process. A quarter of the watchdog's time is the interval,
/// so that a busy machine may miss one.
package struct Watchdog: Service {
    /// A part of the process that must answer.
    package struct Part: Sendable {
        package let name: String
        /// Calls back from the part itself, before or after its return.
        package let ask: @Sendable (@escaping @Sendable () -> Void) async -> Void

        package init(name: String, ask: @escaping @Sendable (@escaping @Sendable () -> Void) async -> Void) {
            self.name = name
            self.ask = ask
        }
    }

    /// The interval of the status without a watchdog.
    private static let statusPause = Duration.seconds(15)

    private let manager: ServiceManager
    private let parts: [Part]
    private let status: @Sendable () -> String?
    private let logger: Logger

    /// The parts are those beside the event loops; `status` is what the process does, nil to leave it.
    package init(
        _ manager: ServiceManager,
        parts: [Part],
        logger: Logger,
        status: @escaping @Sendable () -> String? = { nil }
    ) {
        self.manager = manager
        self.parts = parts + Watchdog.eventLoops
        self.status = status
        self.logger = logger
    }

    package func run() async throws {
        await withGracefulShutdownHandler {
            await cancelWhenGracefulShutdown {
                await withDiscardingTaskGroup { group in await watch(&group) }
            }
        } onGracefulShutdown: { [manager] in
            manager.stopping()
        }
    }

    private func watch(_ group: inout DiscardingTaskGroup) async {
        guard manager.isThere else {
            try? await gracefulShutdown()
            return
        }
        let rounds = Rounds(parts.map(\.name))
        let pause = manager.watchdog.map { $0 / 4 } ?? Watchdog.statusPause
        while !Task.isCancelled {
            switch rounds.state.withLock({ $0.tick() }) {
            case .ask(let round):
                manager.isAlive()
                for (number, part) in parts.enumerated() {
                    group.addTask { await part.ask { rounds.state.withLock { $0.answered(number, in: round) } } }
                }
            case .report(let names):
                logger.error(
                    "a part of the process does not answer; the service manager may restart it",
                    metadata: ["parts": "\(names.joined(separator: ", "))"]
                )
            case .wait: break
            }
            if let text = status() { manager.status(text) }
            do { try await Task.sleep(for: pause) } catch { return }
        }
    }

    private static var eventLoops: [Part] {
        MultiThreadedEventLoopGroup.singleton.makeIterator().enumerated().map { number, loop in
            Part(name: "event loop \(number + 1)") { answer in loop.execute { answer() } }
        }
    }

    private final class Rounds: Sendable {
        let state: Mutex<WatchdogRounds>

        init(_ names: [String]) {
            state = Mutex(WatchdogRounds(parts: names))
        }
    }
}
