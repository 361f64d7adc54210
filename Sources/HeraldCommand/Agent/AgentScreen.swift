import ArgumentParser
import HeraldDevice
import HeraldScreen
import Logging

/// Where a device's screen is shown.
struct AgentScreenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Show the device's screen on this port, to be looked at and used with a browser; 0 picks a free one.",
            valueName: "port"
        )
    )
    var screen: Int?

    @Option(
        help: ArgumentHelp(
            "The address of the screen; whoever reaches it uses the device. (default: 127.0.0.1)",
            valueName: "address"
        )
    )
    var screenHost: String?

    /// Where the screen is; nil where none was asked for.
    func configuration(_ settings: Settings) throws -> ScreenConfiguration? {
        if let screen, !(0...65535).contains(screen) {
            throw ValidationError("--screen must be a port from 0 to 65535")
        }
        guard let port = try screen ?? settings.port(.screen) else { return nil }
        return ScreenConfiguration(host: try screenHost ?? settings.text(.screenHost) ?? "127.0.0.1", port: port)
    }
}

/// The screen of a device that runs.
enum AgentScreen {
    /// The screen as a service that says where it is.
    static func service(_ configuration: ScreenConfiguration, of agent: DeviceAgent, json: Bool) -> ScreenService {
        ScreenService(
            configuration: configuration,
            view: agent,
            logger: Logger(label: "herald.screen") { _ in SwiftLogNoOpLogHandler() }
        ) { port in
            let url = address(configuration.host, port)
            Terminal.say(json ? AgentReport.screen(url) : "screen \(url)")
        }
    }

    /// Where a browser on this machine finds it.
    static func address(_ host: String, _ port: Int) -> String {
        switch host {
        case "0.0.0.0": "http://127.0.0.1:\(port)/"
        case "::": "http://[::1]:\(port)/"
        default: host.contains(":") ? "http://[\(host)]:\(port)/" : "http://\(host):\(port)/"
        }
    }
}
