import HeraldDevice
import HeraldModel
import HeraldScreen
import Logging
import ServiceLifecycle

/// The device of `serve --demo`: connected through the service's own door, as any device, printing what comes, and showing
/// it on a screen.
struct DemoService: Service {
    let agent: DeviceAgent
    let app: Topic
    let curl: DemoCurl
    /// Yields once the service has said that it is ready.
    let ready: AsyncStream<Void>

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in ready { break }
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
                Terminal.say("demo           the device gave up: \(error)")
            }
            // The demo's end is not the service's.
            try? await gracefulShutdown()
        }
    }

    private var screen: ScreenService {
        ScreenService(
            configuration: ScreenConfiguration(port: 0),
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
        case .presented, .question: []
        }
    }

    private func lines(_ event: DeviceEvent) -> [String] {
        switch event {
        case .connected, .notification, .removed, .settingsTaken:
            []
        case .token(let token, _):
            ["demo           a device waits for notifications; send it one:", "    \(curl.line(token))"]
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

/// The command that sends the demo's device a notification, to be pasted into another terminal.
struct DemoCurl: Hashable, Sendable {
    /// The data folder and what is in it, by paths that mean the same in every folder.
    let authorityPath: String
    let certificatePath: String
    /// Where the provider API listens.
    let host: String
    let port: Int

    func line(_ token: DeviceToken) -> String {
        // The server certificate names localhost; where its address is another, curl is told so.
        let resolve = DemoCurl.isLocalhost(host) ? "" : " --resolve localhost:\(port):\(DemoCurl.bracketed(host))"
        return
            "curl -i --http2 --cacert \(DemoCurl.quoted(authorityPath)) --cert \(DemoCurl.quoted(certificatePath))\(resolve)"
            + " -H 'apns-push-type: alert' -d '{\"aps\":{\"alert\":\"Hello from curl\"}}'"
            + " https://localhost:\(port)/3/device/\(token.hex)"
    }

    /// Whether what listens there is reached by the name of this machine.
    private static func isLocalhost(_ host: String) -> Bool {
        ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"].contains(host)
    }

    private static func bracketed(_ host: String) -> String {
        host.contains(":") ? "[\(host)]" : host
    }

    /// A path as a shell takes it for one word.
    private static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: "@"):
                true
            default: false
            }
        }
        return isPlain ? path : "'\(path.replacing("'", with: "'\\''"))'"
    }
}
