import Foundation
import HeraldJSON
import Testing

@testable import HeraldPhone

@Suite struct BundleReaderTests {
    /// Writes files into a folder of their own, which is removed after `body`.
    private func withFolder(_ files: [String: String], _ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "herald-bundle-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for (name, content) in files {
            let path = "\(folder)/\(name)"
            let parent = (path as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
            try content.write(toFile: path, atomically: false, encoding: .utf8)
        }
        try body(folder)
    }

    @Test func `the bundle of the payloads`() throws {
        let bundle = try ExpectedPayload.monopoly()
        #expect(bundle.identifier == "com.example.monopoly" && bundle.name == "Monopoly")
        #expect(bundle.languages == ["de", "en", "fr"] && bundle.developmentLanguage == "en")
        #expect(bundle.wakesInBackground && bundle.launchImageFile == "Launch.png")
        #expect(bundle.text("ESCAPES", in: "en")?.format == "Line one\nLine \"two\"")
        #expect(bundle.text("GAME_PLAY_REQUEST_FORMAT", in: "de")?.format.hasPrefix("%@ and") == true)
        #expect(bundle.sound("chime.aiff") != nil && bundle.sound("nothere.caf") == nil)
    }

    @Test func `catalogs, plurals, the base language, categories, images`() throws {
        let catalog = """
            {"sourceLanguage":"en","version":"1.0","strings":{"Plain":{},"A":{"localizations":{
            "en":{"stringUnit":{"value":"An %@"}},
            "de":{"variations":{"plural":{"one":{"stringUnit":{"value":"eins"}},"other":{"stringUnit":{"value":"%@ viele"}}}}},
            "fr":{"variations":{"device":{"iphone":{"stringUnit":{"value":"tel"}}}}}}},
            "S":{"localizations":{"en":{"stringUnit":{"value":"%1$@: %#@files@ of %#@all@, 50%%"},"substitutions":{
            "files":{"argNum":2,"formatSpecifier":"lld","variations":{"plural":{"one":{"stringUnit":{"value":"a file"}},
            "other":{"stringUnit":{"value":"%arg files"}}}}},
            "all":{"argNum":3,"formatSpecifier":"lld","variations":{"plural":{"other":{"stringUnit":{"value":"%arg"}}}}}}}}},
            "Herald":{"shouldTranslate":false},"Old":{"extractionState":"stale"}}}
            """
        let plurals = """
            <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>FILES</key><dict>
            <key>NSStringLocalizedFormatKey</key><string>%1$@ has %2$#@files@, 100%%</string>
            <key>files</key><dict><key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>
            <key>NSStringFormatValueTypeKey</key><string>d</string>
            <key>one</key><string>%d file</string><key>other</key><string>%d files</string></dict></dict></dict></plist>
            """
        let files = [
            "Localizable.xcstrings": catalog, "en.lproj/Localizable.stringsdict": plurals,
            "Base.lproj/Localizable.strings": "\"BASE\" = \"base\"; \"FILES\" = \"hidden\";",
            "NotificationCategories.json": #"{"CALL":{"actions":[{"identifier":"a","title":"T","foreground":true}]}}"#,
            "Logo.png": "x", "Art.xcassets/Hero.imageset/Contents.json": "{}",
        ]
        try withFolder(files) { folder in
            let bundle = try AppBundle(folder: folder)
            #expect(bundle.languages == ["de", "en", "fr"])
            #expect(bundle.texts["en"]?["Plain"]?.format == "Plain" && bundle.texts["fr"]?["A"]?.format == "tel")
            #expect(bundle.texts["de"]?["A"] == LocalizedText(format: "%@ viele", isPlural: true))
            let substituted = try #require(bundle.texts["en"]?["S"])
            #expect(substituted.isPlural && substituted.format == "%1$@: %2$@ files of %3$@, 50%%")
            #expect(bundle.untranslatedKeys == ["Herald", "Old"])
            let files = try #require(bundle.texts["en"]?["FILES"])
            #expect(files.isPlural && FormatString(files.format).filled(with: ["Bob", "3"]) == "Bob has 3 files, 100%")
            #expect(bundle.texts["en"]?["BASE"]?.format == "base")
            #expect(bundle.categories["CALL"]?.actions.first?.opensApp == true)
            #expect(bundle.image("Logo") == "Logo.png" && bundle.image("Hero") == "Hero")
        }
    }

    @Test func `a project has its languages further down, and sounds in the container come first`() throws {
        let files = [
            "App/Resources/de.lproj/Localizable.strings": "\"A\" = \"eins\";",
            "App/Resources/en.lproj/Localizable.strings": "\"A\" = \"one\";",
            "App/Info.plist": "<plist><dict><key>CFBundleIdentifier</key><string>$(ID)</string></dict></plist>",
            "Pods/Other/fr.lproj/Localizable.strings": "\"A\" = \"un\";",
            "home/Library/Sounds/own.wav": "",
        ]
        try withFolder(files) { folder in
            let bundle = try AppBundle(folder: folder, container: folder + "/home")
            #expect(bundle.languages == ["de", "en"] && bundle.identifier == nil)
            #expect(bundle.sound("own.wav") != nil)
        }
    }

    @Test(
        arguments: [
            ("Info.plist", "junk"), ("Info.plist", "<plist><array/></plist>"),
            ("en.lproj/Localizable.strings", "\"A\""),
            ("en.lproj/Localizable.strings", "bplist00"), ("en.lproj/Localizable.stringsdict", "x"),
            ("Localizable.xcstrings", "{"), ("Localizable.xcstrings", "{}"),
        ]
    )
    func `the error of a damaged file names it`(name: String, content: String) throws {
        try withFolder([name: content]) { folder in
            let error = #expect(throws: BundleError.self) { try AppBundle(folder: folder) }
            #expect(error?.file == "\(folder)/\(name)")
        }
    }

    @Test(arguments: [
        #"{"A":{}}"#, #"{"A":{"actions":[{}]}}"#, "[]",
        #"{"A":{"actions":[{"identifier":"a","title":"b","destructive":1}]}}"#,
    ])
    func `damaged categories are errors`(content: String) throws {
        try withFolder(["Info.plist": "<plist><dict/></plist>", "NotificationCategories.json": content]) { folder in
            let error = #expect(throws: BundleError.self) { try AppBundle(folder: folder) }
            #expect(error?.file.hasSuffix("NotificationCategories.json") == true)
        }
    }

    @Test(arguments: [
        (101, 1, 1, "has 101 categories, and may have 100: remove those that no payload names"),
        (1, 11, 1, "C0 has 11 actions, and may have 10: remove the last ones, a notification shows 4"),
        (1, 1, 257, #""title" of an action of C0 is longer than 256 bytes: shorten it"#),
        (100, 10, 256, nil),
    ])
    func `categories have limits, in a file and from a running app`(
        categories: Int,
        actions: Int,
        bytes: Int,
        fault: String?
    ) throws {
        let action = #"{"identifier":"a","title":"\#(String(repeating: "t", count: bytes))"}"#
        let list = Array(repeating: action, count: actions).joined(separator: ",")
        let entries = (0..<categories).map { #""C\#($0)":{"actions":[\#(list)]}"# }
        let content = "{\(entries.joined(separator: ","))}"
        let request = Array(#"{"do":"categories","topic":"com.example.chat","categories":\#(content)}"#.utf8)
        try withFolder(["Info.plist": "<plist><dict/></plist>", "NotificationCategories.json": content]) { folder in
            guard let fault else {
                #expect(try AppBundle(folder: folder).categories.count == categories)
                _ = try JSON.decode(PhoneAction.self, from: request)
                return
            }
            let error = #expect(throws: BundleError.self) { try AppBundle(folder: folder) }
            #expect(error?.message == fault)
            let refusal = #expect(throws: DecodingError.self) {
                try JSON.decode(PhoneAction.self, from: request)
            }
            #expect(refusal.map { String(describing: $0).contains(fault.suffix(20)) } == true)
        }
    }

    @Test func `the names of categories and actions have a limit`() throws {
        let long = String(repeating: "é", count: 129)
        for content in [#"{"\#(long)":{"actions":[]}}"#, #"{"C":{"actions":[{"identifier":"\#(long)","title":"t"}]}}"#]
        {
            try withFolder(["Info.plist": "<plist><dict/></plist>", "NotificationCategories.json": content]) { folder in
                let error = #expect(throws: BundleError.self) { try AppBundle(folder: folder) }
                #expect(error?.message.hasSuffix("is longer than 256 bytes: shorten it") == true)
            }
        }
    }

    @Test func `limits are enforced`() throws {
        var limits = BundleLimits()
        limits.fileBytes = 10
        try withFolder(["en.lproj/Localizable.strings": "\"A\" = \"more than ten\";"]) { folder in
            #expect(throws: BundleError.self) { try AppBundle(folder: folder, limits: limits) }
        }
        limits = BundleLimits()
        limits.entries = 3
        try withFolder(["a/1": "", "a/2": "", "a/3": "", "a/4": ""]) { folder in
            #expect(throws: BundleError.self) { try AppBundle(folder: folder, limits: limits) }
        }
        #expect(throws: BundleError.self) { try AppBundle(folder: "/nowhere") }
    }

    @Test func `a named pipe does not block`() throws {
        try withFolder(["en.lproj/x": ""]) { folder in
            #expect(mkfifo(folder + "/en.lproj/Localizable.strings", 0o600) == 0)
            let error = #expect(throws: BundleError.self) { try AppBundle(folder: folder) }
            #expect(error?.message == "is not a file")
        }
    }
}
