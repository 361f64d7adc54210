import Foundation

/// Where the doors of a running service listen; nil for a door that is not open.
///
/// It is what `serve` prints, and what stands in `run/doors.json` while the service runs.
struct Doors: Hashable, Sendable, Codable {
    var api: Int?
    var binary: Int?
    var feedback: Int?
    var device: Int?
    var activation: Int?
    var console: Int?
    var pid: Int32

    /// The ports as one JSON object with its members in the order of the doors.
    var json: String {
        let ports: [(String, Int?)] = [
            ("api", api), ("binary", binary), ("feedback", feedback), ("device", device), ("activation", activation),
            ("console", console), ("pid", Int(pid)),
        ]
        let members = ports.compactMap { name, value in value.map { "\"\(name)\":\($0)" } }
        return "{\(members.joined(separator: ","))}"
    }

    /// One line per door, as `serve` prints them; the console's door may listen elsewhere than the others.
    func lines(host: String, consoleHost: String) -> [String] {
        let rows: [(String, String, String, Int?)] = [
            ("provider API", "https", host, api), ("binary", "tls", host, binary), ("feedback", "tls", host, feedback),
            ("devices", "mqtts", host, device), ("activation", "https", host, activation),
            ("console", "http", consoleHost, console),
        ]
        return rows.compactMap { name, scheme, host, port in
            guard let port else { return nil }
            let padding = String(repeating: " ", count: 15 - name.count)
            return "\(name)\(padding)\(scheme)://\(HostPort(host: host, port: port))"
        }
    }

    /// Makes the doors known to others; done just before `ready` is printed.
    func write(to folder: DataFolder) throws {
        try SafeFile.write(Array((json + "\n").utf8), to: folder.doorsPath, mode: 0o600)
    }

    /// Takes back what ``write(to:)`` made known; done when the service stops, and at its start for what a killed one
    /// left.
    static func remove(from folder: DataFolder) {
        unlink(folder.doorsPath)
    }

    /// The doors of the service that runs on a folder.
    /// - Returns: nil if there is no such file, or if it is not one of ours.
    static func read(from folder: DataFolder) -> Doors? {
        guard let bytes = try? SafeFile.read(folder.doorsPath) else { return nil }
        return try? JSONDecoder().decode(Doors.self, from: Data(bytes))
    }
}
