package import Configuration
import Synchronization

/// The values of the command line, the environment and the configuration file.
///
/// The first source that has a key wins.
package struct Settings: Sendable {
    /// The path of the configuration file, if there is one.
    package let file: String?
    private let reader: ConfigReader
    private let typeErrors = TypeErrorReporter()

    /// Variables of the process count if they begin with `HERALD_` and are not empty.
    ///
    /// Without a path of the configuration file, `HERALD_CONFIG` may name it. A hint may name files of the `known`
    /// kinds.
    /// - Throws: ``CommandError/Code/configuration``.
    package init(
        commandLine: [SettingKey: ConfigContent],
        environment: [String: String],
        file: String?,
        of kind: SettingsFile.Kind,
        known: [SettingsFile.Kind]
    ) throws {
        let typed = commandLine.map { (AbsoluteConfigKey([$0.key.name]), ConfigValue($0.value, isSecret: false)) }
        let variables = environment.filter { $0.key.hasPrefix("HERALD_") && !$0.value.isEmpty }
        self.file = file ?? variables["HERALD_CONFIG"]
        var providers: [any ConfigProvider] = [
            InMemoryProvider(name: "command line", values: Dictionary(uniqueKeysWithValues: typed)),
            EnvironmentVariablesProvider(environmentVariables: variables).prefixKeys(with: "herald"),
        ]
        if let path = self.file {
            providers.append(try SettingsFile.provider(path: path, of: kind, known: known))
        }
        reader = ConfigReader(providers: providers, accessReporter: typeErrors)
    }

    /// The values of one mapping alone.
    package init(values: [AbsoluteConfigKey: ConfigValue]) {
        file = nil
        reader = ConfigReader(provider: InMemoryProvider(values: values), accessReporter: typeErrors)
    }

    package func text(_ key: SettingKey) throws -> String? {
        try read(key) { $0.string(forKey: $1) }
    }

    package func texts(_ key: SettingKey) throws -> [String]? {
        try read(key) { $0.stringArray(forKey: $1) }
    }

    package func number(_ key: SettingKey) throws -> Int? {
        try read(key) { $0.int(forKey: $1) }
    }

    package func number(_ key: SettingKey, in range: ClosedRange<Int>) throws -> Int? {
        guard let number = try number(key) else { return nil }
        guard range.contains(number) else {
            throw key.refusal(String(number), "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    package func flag(_ key: SettingKey) throws -> Bool? {
        try read(key) { $0.bool(forKey: $1) }
    }

    /// Reads a value.
    ///
    /// The library's reader returns nil for a value that it cannot convert. Only a variable can be such a value: the two
    /// other sources are typed.
    /// - Throws: ``CommandError/Code/configuration`` for a value of the wrong type.
    private func read<Value>(_ key: SettingKey, _ get: (ConfigReader, ConfigKey) -> Value?) throws -> Value? {
        let value = get(reader, ConfigKey([key.name]))
        if typeErrors.take() { throw key.typeError(at: nil) }
        return value
    }
}

/// Remembers that a source held a value of the wrong type.
///
/// The library reports it with the results of its sources only.
private final class TypeErrorReporter: AccessReporter {
    private let found = Mutex(false)

    package func report(_ event: AccessEvent) {
        let isFailed = event.providerResults.contains { if case .failure = $0.result { true } else { false } }
        if isFailed { found.withLock { $0 = true } }
    }

    package func take() -> Bool {
        found.withLock { found in
            defer { found = false }
            return found
        }
    }
}
