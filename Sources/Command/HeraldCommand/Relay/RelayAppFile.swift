import Foundation
import HeraldModel
import HeraldRelay
import HeraldService
import Yams

/// Reads the key `apps` of the configuration file: a list of mappings, one for each app, team or environment.
enum RelayAppFile {
    /// Reads the apps of a file; none if it has no `apps`.
    /// - Throws: ``CommandError/Code/configuration``, with the line.
    static func apps(path: String, environment: PushEnvironment) throws -> [RelayApp] {
        let text = String(decoding: TextEncoding.plain(try SafeFile.read(path)), as: UTF8.self)
        // `Settings` has checked that the file is YAML and `apps` a list.
        guard let blocks = try Yams.compose(yaml: text)?.mapping?["apps"]?.sequence else { return [] }
        return try blocks.map { node in
            let place = "\(path)\(node.mark.map { ":\($0.line)" } ?? "")"
            guard let mapping = node.mapping else {
                throw CommandError(
                    .configuration,
                    "\(place): each of `apps` is a mapping, with `topic` and `certificate`"
                )
            }
            let rows = RelayAppSettings.fileRows
            let settings = Settings(
                values: try SettingsFile.values(
                    mapping,
                    keys: rows.map(\.key),
                    path: path,
                    of: .relay,
                    known: SettingsFile.Kind.all
                )
            )
            var values = RelayAppValues()
            for row in rows { try row.read(settings, &values) }
            return try values.app(environment, at: place)
        }
    }
}
