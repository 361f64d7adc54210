import Configuration
import Yams

/// The configuration file: one mapping of YAML, from keys to values.
///
/// It is read here and not by the library's file provider, because only whoever reads it knows on which line a mistake
/// is, and because the provider does not object to keys that nobody asks for.
enum SettingsFile {
    /// Reads the file.
    /// - Throws: ``CommandError/Code/configuration``, with the line where there is one.
    static func provider(path: String) throws -> InMemoryProvider {
        let text: String
        do {
            text = String(decoding: try SafeFile.read(path), as: UTF8.self)
        } catch let error as CommandError {
            throw CommandError(.configuration, "\(error.message): mend it, or name another file with --config")
        }
        return InMemoryProvider(name: path, values: try values(text, path: path))
    }

    /// The values of a file's text; none if it is empty or holds comments only.
    static func values(_ text: String, path: String) throws -> [AbsoluteConfigKey: ConfigValue] {
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw YAMLComplaint(error, in: text).error(path: path)
        }
        guard let root, root.scalar?.string.isEmpty != true else { return [:] }
        guard let mapping = root.mapping else {
            throw CommandError(
                .configuration,
                "\(path) does not hold keys and values: write lines like `api-port: 2197`"
            )
        }
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, node) in mapping {
            let place = "\(path)\(name.mark.map { ":\($0.line)" } ?? "")"
            let key = try key(name, at: place)
            if key.shape == .blocks {
                // Read by whom they are for: a value of one of the three sources is a text or a list of texts.
                guard node.sequence != nil else { throw key.misfit(at: place) }
                continue
            }
            guard let content = content(of: node, key.shape) else { throw key.misfit(at: place) }
            values[AbsoluteConfigKey([key.rawValue])] = ConfigValue(content, isSecret: false)
        }
        return values
    }

    private static func key(_ node: Node, at place: String) throws -> SettingKey {
        if let key = node.string.flatMap(SettingKey.init(rawValue:)) { return key }
        let name = LogText.escaped(node.string ?? "?", limit: 64)
        let hint = SettingKey.nearest(to: name).map { "did you mean `\($0.rawValue)`?" } ?? "remove it"
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

extension SettingKey {
    /// The error for a value of another shape than the key's.
    func misfit(at place: String) -> CommandError {
        let wanted =
            switch shape {
            case .text: "a text"
            case .texts: "a list of texts"
            case .number: "a whole number"
            case .flag: "true or false"
            case .blocks: "a list of mappings"
            }
        return CommandError(
            .configuration,
            "\(place): `\(rawValue)` must be \(wanted): write for example `\(rawValue): \(example)`"
        )
    }
}
