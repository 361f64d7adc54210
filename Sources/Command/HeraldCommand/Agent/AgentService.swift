import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel
import HeraldPhone
import HeraldScreen
import HeraldService
import Logging
import ServiceLifecycle
import UnixSignals

/// Runs a device: prints its events, asks for permissions on the terminal, and stops on a signal.
struct AgentService: Service {
    let agent: DeviceAgent
    let device: DeviceID
    let json: Bool
    /// The device's folder; nil for a device that keeps nothing.
    var folder: String?
    /// Renews the certificate; nil if it is not in the device's folder.
    let renewal: AgentRenewal?
    let manager: ServiceManager
    /// The device's screen; nil for none.
    var screen: ScreenConfiguration?
    /// Further views of the device; the end of a view does not end the device.
    var views: [@Sendable () async -> Void] = []

    func run() async throws {
        let asks = !json && isatty(STDIN_FILENO) == 1
        let (questions, asking) = AsyncStream<PhoneSnapshot.App>.makeStream()
        try await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { group.cancelAll() }
                if let renewal { group.addTask { await renewal.run() } }
                for view in views { group.addTask { await view() } }
                if asks {
                    group.addTask { for await app in questions { await ask(app) } }
                }
                let logger = Logger(label: "herald.agent") { _ in SwiftLogNoOpLogHandler() }
                manager.ready("connecting", logger)
                do {
                    try await agent.run { event in
                        if let text = AgentService.status(event) { manager.status(text) }
                        if case .question(let app) = event, asks {
                            asking.yield(app)
                        } else if json {
                            Terminal.sayExactly(AgentEventLine(event, device: device).text)
                        } else {
                            for line in AgentReport.lines(event, device: device, folder: folder) { Terminal.say(line) }
                        }
                    }
                } catch is CancellationError {
                    // Stopped.
                }
            }
        }
    }

    /// The device's state for the service manager; nil if an event does not change it.
    private static func status(_ event: AgentEvent) -> String? {
        guard case .connection(let event) = event else { return nil }
        return switch event {
        case .connected: "connected"
        case .disconnected: "not connected"
        default: nil
        }
    }

    /// Asks on the terminal until there is an answer; an empty answer leaves the request open.
    private func ask(_ app: PhoneSnapshot.App) async {
        let kinds = app.wants.map { "\($0.rawValue)s" }.joined(separator: ", ")
        let name = LogText.escaped(app.name, limit: 64, spelling: .terminal)
        while true {
            Terminal.say(
                "\"\(name)\" (\(app.topic)) would like to send you notifications: \(kinds). "
                    + "Allow? [y, n, or some: alert,sound]"
            )
            // The thread waits for a person; a stop does not wait for the thread.
            let (lines, line) = AsyncStream<String>.makeStream()
            Thread.detachNewThread {
                if let text = readLine() { line.yield(text) }
                line.finish()
            }
            let answer = await lines.first { _ in true }
            if Task.isCancelled { return }
            guard let answer = answer?.trimmingCharacters(in: .whitespaces).lowercased(), !answer.isEmpty else {
                return Terminal.say(AgentReport.waiting(app, folder))
            }
            do {
                let allowed: Set<NotificationKind> =
                    switch answer {
                    case "y", "yes": Set(app.wants)
                    case "n", "no": []
                    default: try AgentPermission.kinds(answer)
                    }
                return try await agent.perform(.permit(app.topic, allowed))
            } catch let error as ValidationError {
                Terminal.complain("herald: \(error.message)")
            } catch {
                return Terminal.complain("herald: \(LogText.escaped("\(error)", limit: 256, spelling: .terminal))")
            }
        }
    }

    /// Runs until SIGINT or SIGTERM, or until the service refuses the device.
    func runUntilSignalled() async throws {
        var services = [
            ServiceGroupConfiguration.ServiceConfiguration(
                service: self,
                successTerminationBehavior: .gracefullyShutdownGroup
            )
        ]
        let answers = Watchdog.Part(name: "device") { [agent] answer in
            _ = await agent.snapshot()
            answer()
        }
        let logger = Logger(label: "herald.agent") { StreamLogHandler.standardError(label: $0) }
        services.append(.init(service: Watchdog(manager, parts: [answers], logger: logger)))
        if let screen { services.append(.init(service: AgentScreen.service(screen, of: agent, json: json))) }
        var configuration = ServiceGroupConfiguration(
            services: services,
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "herald.agent") { _ in SwiftLogNoOpLogHandler() }
        )
        // Cancels whatever has not ended by then: a browser that reads nothing would hold the screen.
        configuration.maximumGracefulShutdownDuration = .seconds(5)
        try await ServiceGroup(configuration: configuration).run()
    }
}
