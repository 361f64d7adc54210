import Foundation
import HeraldJSON
import HeraldModel

@testable import HeraldPhone

extension FuzzTarget {
    static let phone: [FuzzTarget] = [
        FuzzTarget("property-list-binary", upTo: 2048, binaryPropertyList),
        FuzzTarget("property-list-xml", upTo: 4096, xmlPropertyList),
        FuzzTarget("strings-file", upTo: 2048, stringsFile),
        FuzzTarget("string-catalog", upTo: 4096, stringCatalog),
        FuzzTarget("sound-header", upTo: 1024, soundHeader),
        FuzzTarget("presentation", upTo: 4096, presentation),
    ]

    @Sendable
    private static func binaryPropertyList(_ bytes: [UInt8]) {
        var limits = BundleLimits()
        limits.objects = 10_000
        let file = BinaryPropertyList.isBinary(bytes) ? bytes : Array("bplist00".utf8) + bytes
        guard let value = try? PropertyListFile.read(file, file: "file", limits: limits) else { return }
        check(count(value) <= limits.objects, "a property list has more objects than allowed")
        use(value)
    }

    @Sendable
    private static func xmlPropertyList(_ bytes: [UInt8]) {
        guard !BinaryPropertyList.isBinary(bytes), PropertyListFile.isPropertyList(bytes),
            let value = try? PropertyListFile.read(bytes, file: "file", limits: BundleLimits())
        else { return }
        check(depth(value) <= PropertyListFile.maximumDepth, "a property list is nested deeper than allowed")
        use(value)
    }

    private static func use(_ value: JSON) {
        guard let members = value.members, let texts = try? PluralFile.read(members, file: "file") else { return }
        for text in texts.values { fill(text.format) }
    }

    private static func count(_ value: JSON) -> Int {
        switch value {
        case .array(let elements): elements.reduce(1) { $0 + count($1) }
        case .object(let members): members.reduce(1) { $0 + count($1.value) }
        default: 1
        }
    }

    private static func depth(_ value: JSON) -> Int {
        switch value {
        case .array(let elements): 1 + (elements.map(depth).max() ?? 0)
        case .object(let members): 1 + (members.map { depth($0.value) }.max() ?? 0)
        default: 0
        }
    }

    /// Texts: again as they were written.
    @Sendable
    private static func stringsFile(_ bytes: [UInt8]) {
        guard let texts = try? StringsFile.read(bytes, file: "file") else { return }
        func quoted(_ text: String) -> String {
            // By scalars: with a combining mark behind it, a quotation mark is another character.
            "\"" + text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + "\""
        }
        // A zero byte in second place would stand for UTF-16.
        let written = "\n\n" + texts.map { "\(quoted($0.key.text)) = \(quoted($0.value));\n" }.joined()
        check((try? StringsFile.read(Array(written.utf8), file: "file")) == texts, "texts are not read as written")
        for text in texts.values { fill(text) }
    }

    private static func fill(_ text: String) {
        let format = FormatString(text)
        check(format.argumentCount <= 999 || format.argumentCount <= text.utf8.count, "too many arguments")
        let filled = format.filled(with: ["one", String(repeating: "x", count: 5000), "%@"])
        check(filled.utf8.count <= FormatString.maximumBytes, "a text is longer than allowed")
    }

    @Sendable
    private static func stringCatalog(_ bytes: [UInt8]) {
        guard let content = try? StringCatalog.read(bytes, file: "file") else { return }
        for texts in content.languages.values {
            for text in texts.values { fill(text.format) }
        }
    }

    @Sendable
    private static func soundHeader(_ bytes: [UInt8]) {
        if let fault = SoundFile(prefix: bytes).fault { check(!fault.description.isEmpty, "a fault without words") }
    }

    /// A payload through the check of `herald check` and the presentation of a device.
    @Sendable
    private static func presentation(_ bytes: [UInt8]) {
        for type in [PushType.alert, .background, .liveactivity] {
            let result = PayloadCheck(bytes, pushType: type, now: 1_800_000_000)
            check(result.size == bytes.count && result.compactSize <= result.size, "a compact payload is longer")
            let notification = IncomingNotification(payload: bytes, pushType: type)
            _ = Presenter(bundle: nil).presentation(of: notification, in: DeviceSituation(now: 1_800_000_000))
        }
    }
}
