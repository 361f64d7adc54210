import HeraldCourier
import HeraldModel

/// The settings of where devices find the service.
enum DeviceAddresses {
    static let rows: [Setting<ServerConfiguration>] = [
        .list(
            "device-addresses",
            \.deviceAddresses,
            example: "push.example.com",
            valueName: "host",
            wanted: "a host, a host and its device port, or both ports, like push.example.com:5223:2191",
            show: { $0.map(\.setting) },
            make: { try $0.map { try ServiceEndpoint(setting: $0) } },
            help: {
                """
                An address that devices are told, the preferred one first; may be repeated. With ports if they differ from \
                this service's: HOST:DEVICE-PORT:ACTIVATION-PORT. (default: each device keeps its address)
                """
            }
        ),
        .text(
            "moved-to",
            \.courier.movedTo,
            valueName: "host",
            wanted: "a host, with the port for devices or without, like push.example.com:5223",
            isAllowed: isPlaceOrEmpty
        ) {
            """
            The address to which this service has moved: devices of MQTT 5 that connect here are sent there (0x9D), and those \
            of 3.1.1 are refused.
            """
        },
    ]

    @Sendable private static func isPlaceOrEmpty(_ text: String) -> Bool {
        text.isEmpty || HostPort(text, defaultPort: 5223) != nil
    }
}

extension ServiceEndpoint {
    /// Reads a host with up to two ports, `push.example.com:5223:2191`; a port that is left out is 0.
    init(setting text: String) throws {
        // An address of version 6 stands in brackets, so colons behind it are those of ports.
        let start = text.lastIndex(of: "]") ?? text.startIndex
        let ports = text[start...].split(separator: ":", omittingEmptySubsequences: false).dropFirst()
        let numbers = ports.compactMap { HostPort("h:\($0)")?.port }
        let host = String(text.dropLast(ports.map { $0.count + 1 }.reduce(0, +)))
        guard numbers.count == ports.count, ports.count <= 2, let whole = HostPort(host, defaultPort: 1) else {
            throw RefusedItem(text: text)
        }
        self.init(host: whole.host, port: numbers.first ?? 0, activation: numbers.dropFirst().first ?? 0)
    }

    /// As it stands in the file of settings.
    var setting: String {
        let host = HostPort(host: host, port: port).bracketedHost
        return ([host] + [port, activation].prefix { $0 > 0 }.map(String.init)).joined(separator: ":")
    }
}
