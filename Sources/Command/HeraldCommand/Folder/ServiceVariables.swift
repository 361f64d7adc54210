import Foundation
import HeraldModel
import HeraldService

/// The addresses of a running service as variables of a shell: `herald status --env`.
///
/// Only `HERALD_DATA` is a setting of Herald's own; the other names must not begin with `HERALD_`.
struct ServiceVariables {
    private let values: [(name: String, value: String)]

    init(_ listeners: ListeningAddresses, folder: DataFolder) {
        let path = URL(fileURLWithPath: folder.path).standardizedFileURL.path
        let address = listeners.consoleHost
        let isLocal = ["127.0.0.1", "::1"].contains(address) || NumericAddress(address)?.isAny == true
        let console = isLocal ? "localhost" : address
        // As a URL has it, with brackets around an address of version 6.
        let name = HostPort(host: listeners.name, port: 0).bracketedHost
        let all: [(String, String?)] = [
            ("HERALD_DATA", path),
            ("APNS_HOST", name),
            ("APNS_PORT", listeners.api?.description),
            ("APNS_CA_FILE", DataFolder(path: path).authorityPath),
            ("APNS_BINARY_PORT", listeners.binary?.description),
            ("APNS_FEEDBACK_PORT", listeners.feedback?.description),
            ("MQTT_HOST", name),
            ("MQTT_PORT", listeners.device?.description),
            ("EST_PORT", listeners.activation?.description),
            ("CONSOLE_TOKEN", (try? SafeFile.read(folder.adminTokenPath)).map { String(decoding: $0, as: UTF8.self) }),
            (
                "CONSOLE_URL",
                listeners.console.map { "\(listeners.consoleScheme)://\(HostPort(host: console, port: $0))" }
            ),
        ]
        values = all.compactMap { name, value in
            value.map { (name, $0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
    }

    /// One `NAME=value` a line; a value with special characters is quoted for a shell.
    var lines: [String] {
        values.map { "\($0.name)=\(ShellWord.quoted($0.value))" }
    }
}
