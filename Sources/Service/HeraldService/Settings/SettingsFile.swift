package import Configuration
package import Yams

/// Reads the configuration file: one YAML mapping from keys to values.
///
/// The library's file provider is not used, because it reports no line numbers and accepts unknown keys.
package enum SettingsFile {
    /// A kind of file, which has keys of its own.
    package struct Kind: Hashable, Sendable {
        /// The process that reads such a file: `service` or `relay`.
        package let name: String
        package let keys: [SettingKey]

        package init(name: String, keys: [SettingKey]) {
            self.name = name
            self.keys = keys
        }

        /// A service's; it may also hold the keys of the client commands.
        package static let service = Kind(name: "service", keys: ServerSettings.rows.map(\.key) + SettingKey.ofClients)
    }

    /// Reads a file of a kind; a key of one of the other kinds that are known is told as such.
    /// - Throws: ``CommandError/Code/configuration``, with the line where there is one.
    package static func provider(path: String, of kind: Kind, known: [Kind]) throws -> InMemoryProvider {
        let text: String
        do {
            text = String(decoding: TextEncoding.plain(try SafeFile.read(path)), as: UTF8.self)
        } catch let error as CommandError {
            throw CommandError(.configuration, "\(error.message): fix it, or name another file with --config")
        }
        return InMemoryProvider(name: path, values: try values(text, path: path, of: kind, known: known))
    }

    /// The values of a file's text; none if it is empty or holds comments only.
    package static func values(
        _ text: String,
        path: String,
        of kind: Kind = .service,
        known: [Kind] = []
    ) throws -> [AbsoluteConfigKey: ConfigValue] {
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw YAMLError(error, in: text).error(path: path)
        }
        guard let root, root.scalar?.string.isEmpty != true else { return [:] }
        guard let mapping = root.mapping else {
            throw CommandError(
                .configuration,
                "\(path) does not hold keys and values: write lines like `api-port: 2197`"
            )
        }
        return try values(mapping, keys: kind.keys, path: path, of: kind, known: known)
    }

    /// The values of a mapping that may have these keys, in a file of a kind.
    package static func values(
        _ mapping: Node.Mapping,
        keys: [SettingKey],
        path: String,
        of kind: Kind,
        known: [Kind]
    ) throws -> [AbsoluteConfigKey: ConfigValue] {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, node) in mapping {
            let place = "\(path)\(name.mark.map { ":\($0.line)" } ?? "")"
            let key = try key(name, of: keys, in: kind, known, at: place)
            if key.shape == .blocks {
                // The relay reads them itself: the library has no values of this type.
                guard node.sequence != nil else { throw key.typeError(at: place) }
                continue
            }
            guard let content = content(of: node, key.shape) else { throw key.typeError(at: place) }
            values[AbsoluteConfigKey([key.name])] = ConfigValue(content, isSecret: false)
        }
        return values
    }

    private static func key(
        _ node: Node,
        of keys: [SettingKey],
        in kind: Kind,
        _ known: [Kind],
        at place: String
    ) throws -> SettingKey {
        if let key = keys.first(where: { $0.name == node.string }) { return key }
        let name = LogText.escaped(node.string ?? "?", limit: 64)
        let nearest = NearestWord.to(name.lowercased().replacing("_", with: "-"), among: keys.map(\.name))
        let hint: String
        if let other = known.first(where: { $0 != kind && $0.keys.contains { $0.name == name } }) {
            hint =
                "it is for a \(other.name)'s file, and this command reads a \(kind.name)'s: name that with --config, or remove the key"
        } else {
            hint = nearest.map { "did you mean `\($0)`?" } ?? "remove it"
        }
        throw CommandError(.configuration, "\(place): unknown key `\(name)`: \(hint)")
    }

    private static func content(of node: Node, _ shape: SettingKey.Shape) -> ConfigContent? {
        switch shape {
        case .text:
            return node.scalar.map { .string($0.string) }
        case .texts:
            guard let sequence = node.sequence else { return nil }
            let texts = sequence.compactMap { $0.scalar?.string }
            return texts.count == sequence.count ? .stringArray(texts) : nil
        case .number:
            return node.scalar.flatMap { Int($0.string) }.map { .int($0) }
        case .flag:
            return node.scalar == nil ? nil : node.bool.map { .bool($0) }
        case .blocks:
            return nil
        }
    }
}
