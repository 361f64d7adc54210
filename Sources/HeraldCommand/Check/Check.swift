import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel

/// `herald check`: what a service would answer to a payload, what is dubious in it, and what users would see.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a payload, and show what users would see.",
        discussion: """
            Says what APNs would answer, what is wrong or dubious, and what each language, app state and setting shows.
            With an app's bundle, or the folder of its project, it finds missing texts and wrong argument counts too;
            without a payload it looks at every text of the app in every language.
            Exits 0 where the payload would be accepted, 1 where it would be refused.

            Example:
              herald check invitation.json --bundle Monopoly.app --language fr
              echo '{"aps":{"alert":"Hello"}}' | herald check - --strict
              herald check --bundle Sources/Monopoly --strict
            """
    )

    @Argument(help: ArgumentHelp("A JSON file, or - for standard input.", valueName: "payload"))
    var payload: String?

    @Option(help: ArgumentHelp("The push type.", valueName: "type"))
    var pushType = PushType.alert.rawValue

    @Option(help: ArgumentHelp("The app: a bundle, or the folder of its project.", valueName: "folder"))
    var bundle: String?

    @Option(help: ArgumentHelp("The app's own folder, with more sounds in Library/Sounds.", valueName: "folder"))
    var container: String?

    @Option(
        name: .customLong("language"),
        help: ArgumentHelp("A language to show; repeat it. (default: all of the app's)", valueName: "code")
    )
    var languages: [String] = []

    @Flag(help: "Exit 1 if there is a warning, too.")
    var strict = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard payload != nil || bundle != nil else {
            throw ValidationError("Name a payload, an app's folder (--bundle), or both.")
        }
        guard container == nil || bundle != nil else {
            throw ValidationError("--container belongs to an app: name its folder too (--bundle).")
        }
        guard PushType(rawValue: pushType) != nil else {
            let known = PushType.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("--push-type is one of \(known).")
        }
        guard languages.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Self.isOfLanguage) }) else {
            throw ValidationError("--language is a code like en, fr-CA or zh-Hant.")
        }
    }

    func run() throws {
        let app = try bundle.map { try AppBundle(folder: $0, container: container) }
        guard let payload else { return try checkApp(app ?? AppBundle()) }
        let bytes = try SafeFile.read(payload == "-" ? "/dev/stdin" : payload)
        let report = CheckReport(
            payload: bytes,
            name: payload == "-" ? "standard input" : payload,
            pushType: PushType(rawValue: pushType) ?? .alert,
            bundle: app,
            languages: languages,
            now: Date().timeIntervalSince1970
        )
        if json {
            try Terminal.sayJSON(report)
        } else {
            for line in CheckText.lines(report) { Terminal.say(line) }
        }
        guard report.check.isAccepted, !strict || report.check.findings.isEmpty else { throw ExitCode.failure }
    }

    private func checkApp(_ app: AppBundle) throws {
        let report = AppReport(name: bundle ?? "", check: BundleCheck(app))
        if json {
            try Terminal.sayJSON(report)
        } else {
            for line in report.lines { Terminal.say(line) }
        }
        guard !strict || report.check.findings.isEmpty else { throw ExitCode.failure }
    }

    private static func isOfLanguage(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
