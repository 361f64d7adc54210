import HeraldDevice
import HeraldModel
import HeraldPhone
import HeraldScreen
import HeraldService
import Logging
import ServiceLifecycle

/// The device of `serve --demo`: connects like any device, prints its notifications, and shows them on a screen.
struct DemoService: Service {
    let agent: DeviceAgent
    let app: Topic
    let curl: DemoCurl
    let screenPort: Int
    /// Yields once the service has printed `ready`: the link to its console, if that has a port.
    let ready: AsyncStream<String?>

    func run() async throws {
        await cancelWhenGracefulShutdown {
            if let link = await ready.first(where: { _ in true }) ?? nil {
                Terminal.say("demo           see what becomes of each notification, within ten minutes: \(link)")
            }
            do {
                try await agent.install(topic: app, allow: Set(NotificationKind.allCases))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    defer { group.cancelAll() }
                    group.addTask { try await screen.run() }
                    try await agent.run { event in
                        for line in lines(event) { Terminal.say(line) }
                    }
                }
            } catch is CancellationError {
                return
            } catch {
                Terminal.say("demo           the device stopped: \(error)")
            }
            // The service goes on without the demo.
            try? await gracefulShutdown()
        }
    }

    private var screen: ScreenService {
        var configuration = ScreenConfiguration(port: screenPort)
        configuration.portOption = "--demo-screen-port"
        configuration.sendLine = curl.line("{token}")
        return ScreenService(
            configuration: configuration,
            view: agent,
            logger: Logger(label: "herald.screen") { _ in SwiftLogNoOpLogHandler() }
        ) { port in
            Terminal.say("demo           the device's screen is at \(AgentScreen.address("127.0.0.1", port))")
        }
    }

    private func lines(_ event: AgentEvent) -> [String] {
        switch event {
        case .connection(let event): lines(event)
        case .notification(let notification, _, _):
            ["demo           received \(DemoService.shown(notification.payload))"]
        case .local(let record):
            ["demo           the device shows its own \(DemoService.shown(Array((record.payload ?? "").utf8)))"]
        case .presented, .question, .fault: []
        }
    }

    private func lines(_ event: DeviceEvent) -> [String] {
        switch event {
        case .connected, .notification, .removed, .settingsTaken, .subscribed, .channelRefused, .announced,
            .announcementRefused:
            []
        case .token(let token, _):
            ["demo           a device waits for notifications; send it one:", "    \(curl.line(token.hex))"]
        case .appRefused(_, let reason):
            ["demo           the device's app is not registered: \(LogText.escaped(reason, limit: 256))"]
        case .disconnected(let reason, _):
            ["demo           the device is disconnected: \(LogText.escaped(reason, limit: 256))"]
        }
    }

    private static func shown(_ payload: [UInt8]) -> String {
        LogText.escaped(String(decoding: payload, as: UTF8.self), limit: 8192, spelling: .terminal)
    }
}

/// A `curl` command that sends the demo's device a notification.
struct DemoCurl: Hashable, Sendable {
    /// Absolute paths, which mean the same in every folder.
    let authorityPath: String
    let certificatePath: String
    /// The address of the provider API.
    let host: String
    let port: Int

    func line(_ token: String) -> String {
        // The server certificate names localhost, so curl connects by that name to another address.
        let address = HostPort(host: host, port: port).bracketedHost
        let resolve = DemoCurl.isLocalhost(host) ? "" : " --resolve localhost:\(port):\(address)"
        return
            "curl -i --http2 --cacert \(ShellWord.quoted(authorityPath)) --cert \(ShellWord.quoted(certificatePath))\(resolve)"
            + " -H 'apns-push-type: alert' -d '{\"aps\":{\"alert\":\"Hello from curl\"}}'"
            + " https://localhost:\(port)/3/device/\(token)"
    }

    /// Whether `localhost` reaches a listener on this address.
    private static func isLocalhost(_ host: String) -> Bool {
        ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"].contains(host)
    }
}
