import Foundation
import HeraldModel
package import HeraldTrust

/// The addresses of a running service, as `serve` prints them and `run/listeners.json` holds them.
package struct ListeningAddresses: Hashable, Sendable, Codable {
    package var api: Int?
    package var binary: Int?
    package var feedback: Int?
    package var device: Int?
    package var activation: Int?
    package var console: Int?
    package var pid: Int32
    /// The address of every listener except the console's.
    package var host: String
    /// A name or address of the server certificate by which this machine reaches the listeners.
    package var name = "localhost"
    package var consoleHost: String
    /// Whether the console speaks TLS.
    package var consoleTLS = false
    /// The address of the console behind a proxy; nil without one.
    package var proxiedConsole: String?

    private enum CodingKeys: String, CodingKey {
        case api
        case binary
        case feedback
        case device
        case activation
        case console
        case pid
        case host
        case name
        case consoleHost = "console_host"
        case consoleTLS = "console_tls"
        case proxiedConsole = "console_url"
    }

    /// One line for each open listener.
    package var lines: [String] {
        let rows: [(String, String, String, Int?)] = [
            ("provider API", "https", host, api), ("binary", "tls", host, binary), ("feedback", "tls", host, feedback),
            ("devices", "mqtts", host, device), ("activation", "https", host, activation),
            ("console", consoleScheme, consoleHost, console),
        ]
        return rows.compactMap { name, scheme, host, port in
            guard let port else { return nil }
            let padding = String(repeating: " ", count: 15 - name.count)
            return "\(name)\(padding)\(scheme)://\(HostPort(host: host, port: port))"
        }
    }

    /// The address of the console for a browser, on this machine unless there is a proxy; nil if it has no port.
    package var consoleURL: String? {
        if let proxiedConsole, console != nil {
            return proxiedConsole.hasSuffix("/") ? String(proxiedConsole.dropLast()) : proxiedConsole
        }
        let host = NumericAddress(consoleHost)?.isAny == true ? "localhost" : consoleHost
        return console.map { "\(consoleScheme)://\(HostPort(host: host, port: $0))" }
    }

    /// The name by which this machine reaches a listener on `host`, one of a certificate's if it has one.
    ///
    /// It is `localhost` where that name leads to the listener.
    package static func name(of host: String, in names: Set<ServerName>) -> String {
        let hasLocalhost = names.contains(.host("localhost"))
        let address = NumericAddress(host)
        if address?.isAny == true || ["127.0.0.1", "::1"].contains(host), hasLocalhost { return "localhost" }
        if address?.isAny != true, let name = ServerName(host), names.contains(name) { return host }
        // A certificate of the operator's own.
        let others = names.compactMap { if case .host(let name) = $0, !name.contains("*") { name } else { nil } }
        return hasLocalhost ? "localhost" : others.min() ?? NumericAddress.reachable(host)
    }

    package var consoleScheme: String { consoleTLS ? "https" : "http" }

    /// Writes the file, just before `ready` is printed.
    package func write(to folder: DataFolder) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        try SafeFile.write(
            Array(try encoder.encode(self)) + [UInt8(ascii: "\n")],
            to: folder.listenersPath,
            mode: 0o600
        )
    }

    /// Removes the file: when the service stops, and at its start after a kill.
    package static func remove(from folder: DataFolder) {
        unlink(folder.listenersPath)
    }

    /// The addresses of the service that runs on a folder; nil if there is no such file, or it is damaged.
    package static func read(from folder: DataFolder) -> ListeningAddresses? {
        guard let bytes = try? SafeFile.read(folder.listenersPath) else { return nil }
        return try? JSONDecoder().decode(ListeningAddresses.self, from: Data(bytes))
    }
}
