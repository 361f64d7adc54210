import Foundation

/// The addresses of a running service as variables of a shell: `herald status --env`.
///
/// Only `HERALD_DATA` is a setting of Herald's own; the other names must not begin with `HERALD_`.
struct ServiceVariables {
    private let values: [(name: String, value: String)]

    init(_ listeners: ListeningAddresses, folder: DataFolder) {
        let path = URL(fileURLWithPath: folder.path).standardizedFileURL.path
        let host = ServiceVariables.reachable(listeners.host)
        let console = ServiceVariables.reachable(listeners.consoleHost)
        let scheme = listeners.consoleScheme
        let all: [(String, String?)] = [
            ("HERALD_DATA", path),
            ("APNS_HOST", host),
            ("APNS_PORT", listeners.api?.description),
            ("APNS_CA_FILE", DataFolder(path: path).authorityPath),
            ("APNS_BINARY_PORT", listeners.binary?.description),
            ("APNS_FEEDBACK_PORT", listeners.feedback?.description),
            ("MQTT_HOST", host),
            ("MQTT_PORT", listeners.device?.description),
            ("EST_PORT", listeners.activation?.description),
            ("CONSOLE_TOKEN", (try? SafeFile.read(folder.adminTokenPath)).map { String(decoding: $0, as: UTF8.self) }),
            ("CONSOLE_URL", listeners.console.map { "\(scheme)://\(HostPort(host: console, port: $0))" }),
        ]
        values = all.compactMap { name, value in
            value.map { (name, $0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
    }

    /// One `NAME=value` a line; a value with special characters is quoted for a shell.
    var lines: [String] {
        values.map { "\($0.name)=\(ShellWord.quoted($0.value))" }
    }

    /// A name for an address to listen on that the server certificate has: `localhost` for all addresses and for loopback.
    private static func reachable(_ host: String) -> String {
        ["0.0.0.0", "::", "127.0.0.1", "::1"].contains(host) ? "localhost" : host
    }
}
