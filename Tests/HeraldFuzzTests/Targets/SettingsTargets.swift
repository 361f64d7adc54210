import HeraldModel

@testable import HeraldCommand
@testable import HeraldService

extension FuzzTarget {
    static let settings: [FuzzTarget] = [
        FuzzTarget("settings", upTo: 2048, settingsFile)
    ]

    /// The configuration file, to the configuration of the service; every mistake has one line of words.
    @Sendable
    private static func settingsFile(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        do {
            let values = try SettingsFile.values(text, path: "herald.yaml")
            _ = try ServerConfiguration(Settings(values: values))
        } catch let error as CommandError {
            check(error.code == .configuration, "the error \(error)")
            check(error.message.utf8.count < 4096, "a long error")
        } catch {
            fatalError("broken property: a mistake in the settings is \(error)")
        }
    }
}
