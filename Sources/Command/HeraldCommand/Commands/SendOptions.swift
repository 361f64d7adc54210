import ArgumentParser
import Foundation
import HeraldModel
import HeraldProvider
import HeraldService

/// The options of `herald send`.
///
/// Each may be missing here, so that it can come from the environment or from the configuration file.
struct SendOptions: ParsableArguments {
    @Argument(help: "The device token: \(PushToken.rule).")
    var token: String?

    @Option(
        name: .customLong("label"),
        help: ArgumentHelp(
            "Instead of a token: the app on each device with this label, or with one of this name; repeat it for further ones.",
            valueName: "name[=value]"
        ),
        transform: LabelFilter.read
    )
    var labels: [LabelFilter] = []

    @Option(
        help: ArgumentHelp(
            "The app: a bundle identifier, with the suffix of the push type if it has one.",
            valueName: "id"
        )
    )
    var topic: String?

    @Option(help: ArgumentHelp("A provider certificate: PEM with certificate, chain and key.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A provider key (AuthKey_….p8), with --key-id and --team.", valueName: "file"))
    var key: String?

    @Option(
        help: ArgumentHelp("The key's identifier. (default: from the name of an AuthKey file)", valueName: "id")
    )
    var keyId: String?

    @Option(help: ArgumentHelp("The team's identifier.", valueName: "id"))
    var team: String?

    @Option(help: ArgumentHelp("The text to show.", valueName: "text"))
    var alert: String?

    @Option(help: ArgumentHelp("The title to show.", valueName: "text"))
    var title: String?

    @Option(help: ArgumentHelp("The number on the app's icon; 0 removes it.", valueName: "n"))
    var badge: Int?

    @Option(help: ArgumentHelp("The sound to play: a name, or default.", valueName: "name"))
    var sound: String?

    @Option(help: ArgumentHelp("A JSON file to send as it is, or - for standard input.", valueName: "file"))
    var payload: String?

    @Option(help: ArgumentHelp("The push type. (default: as the topic's suffix says, else alert)", valueName: "type"))
    var pushType: String?

    @Option(help: ArgumentHelp("10, 5 or 1.", valueName: "n"))
    var priority: Int?

    @Option(
        help: ArgumentHelp("When it expires: UNIX seconds, a time like 1h, or 0 for one attempt.", valueName: "when")
    )
    var expiration: String?

    @Option(help: ArgumentHelp("Notifications that share it show as one.", valueName: "id"))
    var collapseId: String?

    @OptionGroup var peer: PeerOptions

    @Option(help: ArgumentHelp("\(SettingKey.proxyHelp)", valueName: "url"))
    var proxy: String?

    @Flag(help: "Print JSON.")
    var json = false

    /// All three sources together: what was typed, the environment, the configuration file.
    ///
    /// Of options that exclude each other, a typed one wins over those of the environment and the file.
    /// - Throws: ``CommandError/Code/configuration``.
    func completed(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> SendOptions {
        var all = self
        let settings = try peer.settings(environment: environment)
        try all.peer.complete(from: settings)
        all.proxy = try proxy ?? settings.text(.proxy)
        all.topic = try topic ?? settings.text(.topic)
        if key == nil { all.certificate = try certificate ?? settings.text(.certificate) }
        if certificate == nil { all.key = try key ?? settings.text(.key) }
        if all.key != nil {
            all.keyId = try keyId ?? settings.text(.keyID)
            all.team = try team ?? settings.text(.team)
        }
        let isComposed = alert != nil || title != nil || badge != nil || sound != nil
        if !isComposed { all.payload = try payload ?? settings.text(.payload) }
        if payload == nil {
            all.alert = try alert ?? settings.text(.alert)
            all.title = try title ?? settings.text(.title)
            all.badge = try badge ?? settings.number(.badge)
            all.sound = try sound ?? settings.text(.sound)
        }
        all.pushType = try pushType ?? settings.text(.pushType)
        all.priority = try priority ?? settings.number(.priority)
        all.expiration = try expiration ?? settings.text(.expiration)
        all.collapseId = try collapseId ?? settings.text(.collapseID)
        return all
    }

    /// The credential that was named.
    func credential() throws -> ProviderCredential {
        switch (certificate, key) {
        case (let certificate?, nil):
            guard keyId == nil, team == nil else {
                throw ValidationError("--key-id and --team need --key.")
            }
            return .certificate(pem: try SafeFile.read(certificate, isSecret: true))
        case (nil, let key?):
            guard let team else { throw ValidationError("--key needs --team.") }
            guard let id = keyId ?? SendOptions.identifier(inNameOf: key) else {
                throw ValidationError("--key needs --key-id.")
            }
            return .key(pem: try SafeFile.read(key, isSecret: true), id: id, team: team)
        default:
            throw ValidationError("Name the provider's credential: --certificate, or --key with --key-id and --team.")
        }
    }

    /// `AuthKey_<key id>.p8` is how keys are named when they are made.
    static func identifier(inNameOf path: String) -> String? {
        let name = (path as NSString).lastPathComponent
        guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
        return String(name.dropFirst(8).dropLast(3))
    }
}
