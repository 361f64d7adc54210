import Foundation
import HeraldJSON
import HeraldModel
import Testing

@testable import HeraldPhone

@Suite struct FormatVariablesTests {
    private static let arguments = ["5", "2", "three", "four"]

    /// The text of a `.stringsdict` with a format string and the forms `other` of its variables.
    private static func plural(_ format: String, _ variables: [String: String]) throws -> LocalizedText {
        var entry: JSON.Object = ["NSStringLocalizedFormatKey": .string(format)]
        for (name, other) in variables {
            entry[name] = .object([
                "NSStringFormatSpecTypeKey": .string("NSStringPluralRuleType"),
                "NSStringFormatValueTypeKey": .string("d"), "one": .string("one \(name)"), "other": .string(other),
            ])
        }
        return try #require(try PluralFile.read(["K": .object(entry)], file: "x.stringsdict")["K"])
    }

    /// The text of a catalog with a format string and the forms `other` of its substitutions.
    private static func catalog(_ format: String, _ substitutions: String) throws -> LocalizedText {
        let json = """
            {"sourceLanguage":"en","strings":{"K":{"localizations":{"en":{"stringUnit":{"value":"\(format)"},
            "substitutions":{\(substitutions)}}}}}}
            """
        return try #require(try StringCatalog.read(Array(json.utf8), file: "x.xcstrings").languages["en"]?["K"])
    }

    private static func substitution(_ name: String, _ argument: Int?, _ other: String) -> String {
        let number = argument.map { "\"argNum\":\($0)," } ?? ""
        return """
            "\(name)":{\(number)"formatSpecifier":"lld","variations":{"plural":{"one":{"stringUnit":{"value":"one"}},
            "other":{"stringUnit":{"value":"\(other)"}}}}}
            """
    }

    private static func filled(_ text: LocalizedText) -> String {
        FormatString(text.format).filled(with: arguments)
    }

    @Test(
        arguments: [
            ("%#@people@", ["people": "%d people in %#@rooms@", "rooms": "%d rooms"], "5 people in 2 rooms"),
            ("%#@a@.", ["a": "%d a, %#@b@", "b": "%d b, %#@c@", "c": "%d c"], "5 a, 2 b, three c."),
            ("%1$#@people@", ["people": "%1$lu people in %2$#@rooms@", "rooms": "%2$lu rooms"], "5 people in 2 rooms"),
            ("%1$#@people@", ["people": "%lu people in %2$#@rooms@", "rooms": "%lu rooms"], "5 people in 2 rooms"),
            ("%2$#@rooms@", ["rooms": "%d rooms of %1$#@people@", "people": "%d people"], "2 rooms of 5 people"),
            ("%#@people@, %@", ["people": "%d people"], "5 people, 2"),
            ("%3$@: %#@people@", ["people": "%d people and %d rooms"], "three: 5 people and 2 rooms"),
            ("%#@both@", ["both": "%#@people@", "people": "%d people"], "5 people"),
            (
                "%#@both@", ["both": "%#@people@ in %#@rooms@", "people": "%d people", "rooms": "%d rooms"],
                "5 people in 2 rooms"
            ),
            ("%1#@people@", ["people": "%d people"], "5 people"),
            ("%#@люди@ %%", ["люди": "%ld 100%% 人"], "5 100% 人 %"),
        ] as [(String, [String: String], String)]
    )
    func `variables in variables take their own arguments`(
        format: String,
        variables: [String: String],
        text: String
    ) throws {
        let plural = try Self.plural(format, variables)
        #expect(Self.filled(plural) == text && plural.isPlural)
        #expect(plural.faults.filter { !$0.hasPrefix("mixes") } == [])
    }

    @Test(
        arguments: [
            (
                "%#@people@", [("people", 1, "%arg people in %#@rooms@"), ("rooms", 2, "%arg rooms")],
                "5 people in 2 rooms"
            ),
            (
                "%#@people@", [("people", nil, "%arg people in %#@rooms@"), ("rooms", nil, "%arg rooms")],
                "5 people in 2 rooms"
            ),
            (
                "%#@people@", [("people", 2, "%arg people in %#@rooms@"), ("rooms", 1, "%arg rooms")],
                "2 people in 5 rooms"
            ),
            (
                "%1$#@people@", [("people", nil, "%lld people in %2$#@rooms@"), ("rooms", nil, "%arg rooms")],
                "5 people in 2 rooms"
            ),
            ("%#@steps@", [("steps", nil, "%2$@ steps of %arg, of %arg")], "2 steps of 5, of 5"),
            ("%@ has %#@a@ and %#@b@", [("a", 2, "%arg a"), ("b", 3, "%arg b")], "5 has 2 a and three b"),
        ] as [(String, [(String, Int?, String)], String)]
    )
    func `substitutions in substitutions take their own arguments`(
        format: String,
        substitutions: [(String, Int?, String)],
        text: String
    ) throws {
        let list = substitutions.map { Self.substitution($0.0, $0.1, $0.2) }.joined(separator: ",")
        let plural = try Self.catalog(format, list)
        #expect(Self.filled(plural) == text && plural.faults == [])
    }

    @Test func `substitutions beside variations by device are found, and vary by device themselves`() throws {
        let json = """
            {"sourceLanguage":"en","strings":{"K":{"localizations":{"en":{
            "variations":{"device":{"mac":{"stringUnit":{"value":"mac"}},"iphone":{"stringUnit":{"value":"%#@n@ here"}}}},
            "substitutions":{"n":{"argNum":1,"variations":{"device":{"other":{"variations":{"plural":{"other":
            {"stringUnit":{"value":"%arg taps"}}}}},"mac":{"stringUnit":{"value":"clicks"}}}}}}}}},
            "P":{"localizations":{"en":{"variations":{"plural":{"other":{"stringUnit":{"value":"%arg birds"}}}}}}}}}
            """
        let texts = try StringCatalog.read(Array(json.utf8), file: "x").languages["en"]
        #expect(try Self.filled(#require(texts?["K"])) == "5 taps here")
        #expect(try Self.filled(#require(texts?["P"])) == "5 birds")
    }

    @Test(arguments: [
        "\u{200D}", "\u{200C}", "\u{301}", "\u{E31}", "\u{93F}", "\u{FE0F}", "\u{20E3}", "\u{64B}", "\u{3099}",
    ])
    func `what combines with the end of a variable is text`(mark: String) throws {
        func codes(_ text: String) -> [UInt32] { text.unicodeScalars.map(\.value) }
        let plural = try Self.plural(
            "%#@a@\(mark)%1$#@a@\(mark)%%\(mark)%@\(mark)",
            ["a": "%d\(mark)%#@b@\(mark)", "b": "%2$lld\(mark)"]
        )
        let expected = "5\(mark)2\(mark)\(mark)\(mark)5\(mark)2\(mark)\(mark)\(mark)%\(mark)2\(mark)"
        #expect(codes(Self.filled(plural)) == codes(expected))
        let text = try Self.catalog(
            "%#@a@\(mark)%1$@\(mark)",
            Self.substitution("a", 1, "%arg\(mark)%#@b@\(mark)") + "," + Self.substitution("b", 2, "%arg\(mark)")
        )
        #expect(codes(Self.filled(text)) == codes("5\(mark)2\(mark)\(mark)\(mark)5\(mark)"))
    }

    @Test func `a variable within itself stands for its argument, and is a finding`() throws {
        let itself = try Self.plural("%#@a@!", ["a": "%d and %#@a@"])
        #expect(Self.filled(itself) == "5 and 2!" && itself.faults == ["uses its variable a within itself"])
        let circle = try Self.plural("%#@a@!", ["a": "%d, %#@b@", "b": "%d, %#@a@"])
        #expect(Self.filled(circle) == "5, 2, three!" && circle.faults == ["uses its variable a within itself"])
        var bundle = AppBundle()
        bundle.texts = ["en": ["K": itself]]
        #expect(BundleCheck(bundle).findings.map(\.message) == ["K (en) uses its variable a within itself"])
        let check = PayloadCheck(
            Array(#"{"aps":{"alert":{"title":"t","loc-key":"K","loc-args":["5","2"]}}}"#.utf8),
            pushType: .alert,
            bundle: bundle,
            now: 0
        )
        #expect(check.findings.map(\.message).contains("K (en) uses its variable a within itself"))
    }

    @Test func `a variable without a text stands for its argument, and is a finding`() throws {
        let plural = try Self.plural("%#@a@ of %#@none@", ["a": "%d"])
        #expect(Self.filled(plural) == "5 of 2" && plural.faults == ["has no form other for its variable none"])
        let text = try Self.catalog("%#@a@ of %#@none@", Self.substitution("a", nil, "%arg") + #","none":{"argNum":2}"#)
        #expect(Self.filled(text) == "5 of 2" && text.faults == ["has no form other for its variable none"])
    }

    @Test func `texts that grow without end are cut, and a finding`() throws {
        var doubling: [String: String] = ["v40": "x"]
        for number in 0..<40 { doubling["v\(number)"] = "%#@v\(number + 1)@%#@v\(number + 1)@" }
        let deep = try Self.plural("%#@v0@", doubling)
        #expect(deep.faults.contains("nests variables deeper than 16 levels"))
        #expect(deep.faults.contains("has more than 256 variables"))
        let long = String(repeating: "x", count: 40_000)
        let wide = try Self.plural("%#@a@ %#@a@ %#@a@", ["a": long])
        #expect(wide.faults == ["is longer than 65536 bytes with its variables"])
        #expect(wide.format.utf8.count <= FormatString.maximumBytes)
        let many = String(repeating: "%#@a@", count: 10)
        let entry: JSON.Object = [
            "NSStringLocalizedFormatKey": .string(many),
            "a": .object(["other": .string(String(repeating: "x", count: 1000))]),
        ]
        var entries = JSON.Object()
        for number in 0..<1000 { entries["K\(number)"] = .object(entry) }
        let error = #expect(throws: BundleError.self) { try PluralFile.read(entries, file: "x.stringsdict") }
        #expect(error?.description == "x.stringsdict: has texts that its variables make too long")
    }

    @Test(arguments: [0, -1, 999, 1_000_000, Int.max])
    func `no number of an argument traps`(number: Int) throws {
        let text = try Self.catalog(
            "%#@a@",
            Self.substitution("a", number, "%arg %@ %@ %#@b@") + "," + Self.substitution("b", nil, "%arg%@")
        )
        #expect(FormatString(text.format).argumentCount <= 999)
    }
}
