import Configuration
import Synchronization

/// What the command line, the environment and the configuration file say, in this order: the first that says something
/// about a key decides.
struct Settings: Sendable {
    private let reader: ConfigReader
    private let misfits = MisfitReporter()

    /// Gathers the three sources.
    /// - Parameters:
    ///   - commandLine: The options that were typed.
    ///   - environment: All variables of the process; those that begin with `HERALD_` count.
    ///   - file: The path of the configuration file; without one, `HERALD_CONFIG` may name it.
    /// - Throws: ``CommandError/Code/configuration``.
    init(commandLine: [SettingKey: ConfigContent], environment: [String: String], file: String?) throws {
        let typed = commandLine.map { (AbsoluteConfigKey([$0.key.rawValue]), ConfigValue($0.value, isSecret: false)) }
        let variables = environment.filter { $0.key.hasPrefix("HERALD_") }
        var providers: [any ConfigProvider] = [
            InMemoryProvider(name: "command line", values: Dictionary(uniqueKeysWithValues: typed)),
            EnvironmentVariablesProvider(environmentVariables: variables).prefixKeys(with: "herald"),
        ]
        if let path = file ?? environment["HERALD_CONFIG"] {
            providers.append(try SettingsFile.provider(path: path))
        }
        reader = ConfigReader(providers: providers, accessReporter: misfits)
    }

    /// Variables that look like Herald's and are not: likely misspelt, worth a warning.
    static func unknownVariables(in environment: [String: String]) -> [String] {
        let known = Set(SettingKey.allCases.map(\.variable)).union(["HERALD_CONFIG"])
        return environment.keys.filter { $0.hasPrefix("HERALD_") && !known.contains($0) }.sorted()
    }

    func text(_ key: SettingKey) throws -> String? {
        try read(key) { $0.string(forKey: $1) }
    }

    func texts(_ key: SettingKey) throws -> [String]? {
        try read(key) { $0.stringArray(forKey: $1) }
    }

    func number(_ key: SettingKey) throws -> Int? {
        try read(key) { $0.int(forKey: $1) }
    }

    func flag(_ key: SettingKey) throws -> Bool? {
        try read(key) { $0.bool(forKey: $1) }
    }

    /// Reads a value, or says that it is of the wrong type.
    ///
    /// The library's reader takes a value that it cannot convert for one that is not there; the reporter knows better.
    /// Only a variable can be such a value: the two other sources are typed.
    private func read<Value>(_ key: SettingKey, _ get: (ConfigReader, ConfigKey) -> Value?) throws -> Value? {
        let value = get(reader, ConfigKey([key.rawValue]))
        if misfits.take() { throw key.misfit(at: "the environment variable \(key.variable)") }
        return value
    }
}

/// Remembers that a source held a value of the wrong type: the library reports it with the sources' results only.
private final class MisfitReporter: AccessReporter {
    private let found = Mutex(false)

    func report(_ event: AccessEvent) {
        let isMisfit = event.providerResults.contains { if case .failure = $0.result { true } else { false } }
        if isMisfit { found.withLock { $0 = true } }
    }

    func take() -> Bool {
        found.withLock { found in
            defer { found = false }
            return found
        }
    }
}
