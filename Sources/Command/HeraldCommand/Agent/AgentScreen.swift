import ArgumentParser
import HeraldModel
import HeraldPhone
import HeraldScreen
import HeraldService
import Logging
import NIOCore

/// The options of a device's screen.
struct AgentScreenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Serve the device's screen for browsers on this port; 0 picks a free one.",
            valueName: "port"
        )
    )
    var screen: Int?

    @Option(
        help: ArgumentHelp(
            "The address of the screen. Everybody who reaches it controls the device. (default: 127.0.0.1)",
            valueName: "address"
        )
    )
    var screenHost: String?

    /// The screen's configuration; nil if there is no screen.
    func configuration(_ settings: Settings) throws -> ScreenConfiguration? {
        if let screen, !(0...65535).contains(screen) {
            throw ValidationError("--screen is a port from 0 to 65535.")
        }
        guard let port = try screen ?? settings.number(.screen, in: 0...65_535) else { return nil }
        let host = HostPort.unbracketed(try screenHost ?? settings.text(.screenHost) ?? "127.0.0.1")
        guard (try? SocketAddress.makeAddressResolvingHost(host, port: port)) != nil else {
            throw ValidationError(
                "'\(LogText.shown(host))' is not an address of this machine: --screen-host is an IP address,"
                    + " or 0.0.0.0 for all."
            )
        }
        var configuration = ScreenConfiguration(host: host, port: port)
        configuration.maximumConnections = DescriptorLimit.share(of: configuration.maximumConnections)
        return configuration
    }
}

/// The screen of a running device.
enum AgentScreen {
    /// Creates the screen as a service that prints its address.
    static func service(_ configuration: ScreenConfiguration, of agent: DeviceAgent, json: Bool) -> ScreenService {
        ScreenService(
            configuration: configuration,
            view: agent,
            logger: Logger(label: "herald.screen") { _ in SwiftLogNoOpLogHandler() }
        ) { port in
            let url = address(configuration.host, port)
            if json { Terminal.sayExactly(AgentEventLine(screen: url).text) } else { Terminal.say("screen \(url)") }
        }
    }

    /// A command line of the manual that sends a notification, for a service on its usual port; a device knows neither the
    /// provider's certificate nor another port.
    static func sendLine(host: String) -> String {
        "curl -i --http2 --cacert ca.pem --cert provider.pem -H 'apns-topic: {topic}' -H 'apns-push-type: alert'"
            + " -d '{\"aps\":{\"alert\":\"Hello from curl\"}}'"
            + " https://\(HostPort(host: host, port: 2197))/3/device/{token}"
    }

    /// The address for a browser on this machine.
    static func address(_ host: String, _ port: Int) -> String {
        "http://\(HostPort(host: NumericAddress.reachable(host), port: port))/"
    }
}
