import Configuration
import Foundation
import HeraldService

extension SettingsFile.Kind {
    /// A relay's.
    static let relay = SettingsFile.Kind(
        name: "relay",
        keys: RelayServiceSettings.rows.map(\.key) + RelayAppSettings.rows.map(\.key) + SettingKey.ofRelay
    )

    static let all = [service, relay]
}

extension SettingKey {
    /// Every key of every command.
    static let all: [SettingKey] = {
        var known: Set<SettingKey> = []
        return SettingsFile.Kind.all.flatMap(\.keys).filter { known.insert($0).inserted }
    }()
}

extension Settings {
    /// Reads settings where hints may name each kind of file.
    /// - Throws: ``CommandError/Code/configuration``.
    init(
        commandLine: [SettingKey: ConfigContent] = [:],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String?,
        of kind: SettingsFile.Kind = .service
    ) throws {
        try self.init(
            commandLine: commandLine,
            environment: environment,
            file: file,
            of: kind,
            known: SettingsFile.Kind.all
        )
    }

    /// Variables with Herald's prefix that no command reads, most likely misspelt.
    static func unknownVariables(in environment: [String: String]) -> [String] {
        let known = Set(SettingKey.all.map(\.variable)).union(["HERALD_CONFIG"])
        return environment.keys.filter { $0.hasPrefix("HERALD_") && !known.contains($0) }.sorted()
    }
}
