import ArgumentParser
import Foundation
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

/// `herald check`: prints the service's answer to a payload, its mistakes, and what users would see.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a payload, and show what users would see.",
        discussion: """
            Prints the answer of APNs, errors and probable mistakes, and what each language, app state and setting \
            shows. With an app's bundle, or the folder of its project, it also finds missing texts and wrong argument \
            counts. Without a payload, it checks every text of the app in every language.

            Exits with 0 if the payload would be accepted, and with 1 if it would be refused.

            Example:
              herald check invitation.json --bundle Monopoly.app --language fr
              echo '{"aps":{"alert":"Hello"}}' | herald check - --strict
              herald check --bundle Sources/Monopoly --strict
            """
    )

    @Argument(help: ArgumentHelp("A JSON file, or - for standard input.", valueName: "payload"))
    var payload: String?

    @Option(help: ArgumentHelp("The request's push type. (default: none, checked as alert)", valueName: "type"))
    var pushType: String?

    @Option(help: ArgumentHelp("The app: a bundle, or the folder of its project.", valueName: "folder"))
    var bundle: String?

    @Option(help: ArgumentHelp("The app's container, with more sounds in Library/Sounds.", valueName: "folder"))
    var container: String?

    @Option(
        name: .customLong("language"),
        help: ArgumentHelp("A language to show; may be repeated. (default: all of the app's)", valueName: "code")
    )
    var languages: [String] = []

    @Flag(help: "Exit with 1 also if there is a warning.")
    var strict = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard payload != nil || bundle != nil else {
            throw ValidationError("Name a payload, an app's folder (--bundle), or both.")
        }
        guard container == nil || bundle != nil else {
            throw ValidationError("--container needs --bundle, the folder of its app.")
        }
        guard pushType.map({ PushType(rawValue: $0) != nil }) ?? true else {
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
        let bytes = TextEncoding.plain(try SafeFile.read(payload == "-" ? "/dev/stdin" : payload))
        let report = CheckReport(
            payload: bytes,
            name: payload == "-" ? "standard input" : payload,
            pushType: pushType.flatMap { PushType(rawValue: $0) },
            bundle: app,
            languages: languages,
            now: Date().timeIntervalSince1970
        )
        if json {
            Terminal.sayJSON(try JSON(encoding: report))
        } else {
            for line in CheckText.lines(report) { Terminal.say(line) }
        }
        let isGood = !strict || report.check.findings.allSatisfy { $0.severity == .note }
        guard report.check.isAccepted, isGood else { throw ExitCode.failure }
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
