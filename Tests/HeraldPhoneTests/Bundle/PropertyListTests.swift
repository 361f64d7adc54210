import Foundation
import HeraldJSON
import Testing

@testable import HeraldPhone

@Suite struct PropertyListTests {
    private let limits = BundleLimits()
    private let sample: [String: Any] = [
        "text": "plain", "wide": "Grüße 你好", "list": ["a", "b"] + (0..<20).map(String.init), "yes": true,
        "number": 70000,
        "real": 1.5, "inner": ["deep": ["deeper": "x"]],
    ]

    private func bytes(_ format: PropertyListSerialization.PropertyListFormat) throws -> [UInt8] {
        Array(try PropertyListSerialization.data(fromPropertyList: sample, format: format, options: 0))
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.binary, .xml])
    func `both formats give the same values`(format: PropertyListSerialization.PropertyListFormat) throws {
        let bytes = try bytes(format)
        #expect(PropertyListFile.isPropertyList(bytes))
        let members = try PropertyListFile.members(bytes, file: "x", limits: limits)
        #expect(members["text"] == .string("plain") && members["wide"] == .string("Grüße 你好"))
        #expect(members["list"]?.elements?.count == 22 && members["number"]?.integer == 70000)
        #expect(members["yes"] == .boolean(true) && members["real"]?.double == 1.5)
        #expect(members["inner"]?.members?["deep"]?.members?["deeper"] == .string("x"))
    }

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.binary, .xml])
    func `an integer keeps every digit`(format: PropertyListSerialization.PropertyListFormat) throws {
        let list: [String: Any] = ["large": UInt64.max, "exact": 9_007_199_254_740_993, "least": Int.min]
        let data = try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
        let members = try PropertyListFile.members(Array(data), file: "x", limits: limits)
        #expect(members["large"]?.number?.text == "18446744073709551615")
        #expect(members["exact"]?.integer == 9_007_199_254_740_993 && members["least"]?.integer == Int.min)
    }

    @Test func `no damage of a binary list traps`() throws {
        let good = try bytes(.binary)
        for index in good.indices {
            for byte in [0x00, 0x7F, 0x80, 0xA5, 0xDF, 0xFF] as [UInt8] {
                var bad = good
                bad[index] = byte
                _ = try? BinaryPropertyList.read(bad, file: "x", limit: 1000)
            }
            _ = try? BinaryPropertyList.read(Array(good[..<index]), file: "x", limit: 1000)
        }
    }

    @Test func `a list that contains itself is an error`() {
        // One object, an array whose one element is object 0.
        let list: [UInt8] = Array("bplist00".utf8) + [0xA1, 0x00] + [8] + [UInt8](repeating: 0, count: 6) + [1, 1]
        let numbers: [UInt64] = [1, 0, 10]
        let bytes =
            list + numbers.flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) } }
        let error = #expect(throws: BundleError.self) { try BinaryPropertyList.read(bytes, file: "x", limit: 1000) }
        #expect(error?.description == "x: is a damaged binary property list")
    }

    @Test func `deep nesting in XML is an error before it is read`() {
        let open = String(repeating: "<array>", count: 100_000)
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><plist>\(open)<!-- </array> --></plist>"
        let error = #expect(throws: BundleError.self) {
            try PropertyListFile.read(Array(text.utf8), file: "x", limits: limits)
        }
        #expect(error?.description == "x: is nested deeper than 64 levels")
    }

    @Test func `ends that are not ends hide no nesting`() async {
        // Foundation's reader would overflow the stack, so each text is read in a process of its own.
        await #expect(processExitsWith: .success) {
            let open = String(repeating: "<dict><key>a</key>", count: 100_000)
            let ends = String(repeating: "</dict>", count: 100_000)
            let begin = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
            for text in [
                "\(begin)<?x \(ends) ?><plist>\(open)",
                "\(begin)<!DOCTYPE plist [<!ENTITY a \"\(ends)\">]><plist>\(open)",
                "\(begin)<!DOCTYPE plist [<!ENTITY a \"<?\">]><plist>\(open)<!-- ?> -->",
                "\(begin)\(ends)<plist>\(open)",
                "\(begin)" + String(repeating: "<plist>", count: 100_000),
            ] {
                #expect(throws: BundleError.self) {
                    try PropertyListFile.read(Array(text.utf8), file: "x", limits: BundleLimits())
                }
            }
        }
    }

    @Test func `a usual document type is read`() throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <?note </dict> ?><plist version="1.0"><dict><key>a</key><string>b</string></dict></plist>
            """
        let members = try PropertyListFile.members(Array(text.utf8), file: "x", limits: limits)
        #expect(members == ["a": .string("b")])
    }

    #if os(Linux)
    @Test func `a small binary list does not take much memory`() async {
        await #expect(processExitsWith: .success) {
            // A process that takes 256 MiB more than now ends.
            let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).prefix { $0.isNumber }
            let limit = rlim_t(try #require(Int(pages)) * 4096 + 256 << 20)
            var limits = rlimit(rlim_cur: limit, rlim_max: limit)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limits) == 0)
            let zeros = [UInt8](repeating: 0, count: 8 << 20)
            let text = [UInt8](repeating: 0x61, count: 1 << 20)
            let eight: [UInt8] = [0x12, 0x00, 0x80, 0x00, 0x00]
            let million: [UInt8] = [0x12, 0x00, 0x10, 0x00, 0x00]
            for (objects, offsets) in [
                // An array of 8 Mi references to itself.
                ([0xAF] + eight + zeros, [8]),
                // An array of 1,000 references to one text of 1 MiB.
                (
                    [0xAF, 0x11, 0x03, 0xE8] + [UInt8](repeating: 1, count: 1000) + [0x5F] + million + text,
                    [8, 1012]
                ),
            ] as [([UInt8], [UInt64])] {
                func big(_ number: UInt64) -> [UInt8] {
                    (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
                }
                let table = UInt64(8 + objects.count)
                let trailer = [0, 0, 0, 0, 0, 0, 8, 1] + big(UInt64(offsets.count)) + big(0) + big(table)
                let bytes = Array("bplist00".utf8) + objects + offsets.flatMap(big) + trailer
                #expect(throws: BundleError.self) {
                    try BinaryPropertyList.read(bytes, file: "x", limit: BundleLimits().objects)
                }
            }
        }
    }
    #endif

    @Test(arguments: ["<?xml version=\"1.0\"?><plist><dict>", "<plist><dict><key>a</key></dict></plist>", "junk", ""])
    func `a file that is not a property list is an error`(text: String) {
        #expect(throws: BundleError.self) {
            try PropertyListFile.members(Array(text.utf8), file: "x", limits: limits)
        }
    }
}
