import Foundation
import HeraldModel
import HeraldRelay
import Yams

/// The key `apps` of the configuration file: a list of mappings, one for each app, team or environment.
enum RelayAppFile {
    private static let keys = [
        "name", "topic", "topics", "environment", "certificate", "key", "key-id", "team", "service", "interface", "ca",
        "feedback", "console", "console-token",
    ]

    /// Reads the apps of a file; none if it has no `apps`.
    /// - Throws: ``CommandError/Code/configuration``, with the line.
    static func apps(path: String, environment: PushEnvironment) throws -> [RelayApp] {
        let text = String(decoding: try SafeFile.read(path), as: UTF8.self)
        // That it is YAML, and `apps` a list, was checked where the settings were read.
        guard let blocks = try Yams.compose(yaml: text)?.mapping?["apps"]?.sequence else { return [] }
        return try blocks.map { try app($0, path, environment) }
    }

    private static func app(_ node: Node, _ path: String, _ environment: PushEnvironment) throws -> RelayApp {
        func place(_ node: Node) -> String { "\(path)\(node.mark.map { ":\($0.line)" } ?? "")" }
        guard let mapping = node.mapping else {
            throw CommandError(
                .configuration,
                "\(place(node)): each of `apps` is a mapping, with `topic` and `certificate`"
            )
        }
        var texts: [String: String] = [:]
        var topics: [String] = []
        for (name, value) in mapping {
            let key = name.string ?? "?"
            guard keys.contains(key) else {
                throw CommandError(
                    .configuration,
                    "\(place(name)): unknown key `\(LogText.escaped(key, limit: 64))` of an app: it has "
                        + keys.joined(separator: ", ")
                )
            }
            if key == "topics", let list = value.sequence {
                topics += list.compactMap { $0.scalar?.string }
                continue
            }
            guard key != "topics", let text = value.scalar?.string else {
                throw CommandError(
                    .configuration,
                    "\(place(name)): `\(key)` must be \(key == "topics" ? "a list of texts" : "a text")"
                )
            }
            texts[key] = text
        }
        if let topic = texts["topic"] { topics.append(topic) }
        let values = RelayAppValues(
            name: texts["name"],
            topics: topics,
            environment: texts["environment"],
            certificate: texts["certificate"],
            key: texts["key"],
            keyID: texts["key-id"],
            team: texts["team"],
            service: texts["service"],
            interface: texts["interface"],
            ca: texts["ca"],
            feedback: texts["feedback"],
            console: texts["console"],
            consoleToken: texts["console-token"]
        )
        return try values.app(environment, at: place(node))
    }
}
