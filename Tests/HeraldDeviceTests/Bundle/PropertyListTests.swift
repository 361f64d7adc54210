import Foundation
import Testing

@testable import HeraldDevice

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
    func `both formats say the same`(format: PropertyListSerialization.PropertyListFormat) throws {
        let bytes = try bytes(format)
        #expect(PropertyListFile.isOne(bytes))
        let members = try PropertyListFile.members(bytes, file: "x", limits: limits)
        #expect(members["text"] == .string("plain") && members["wide"] == .string("Grüße 你好"))
        #expect(members["list"]?.elements?.count == 22 && members["number"]?.integer == 70000)
        #expect(members["yes"] == .boolean(true) && members["real"] == .number(1.5))
        #expect(members["inner"]?.members?["deep"]?.members?["deeper"] == .string("x"))
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

    @Test func `a list that holds itself is an error`() {
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

    @Test(arguments: ["<?xml version=\"1.0\"?><plist><dict>", "<plist><dict><key>a</key></dict></plist>", "junk", ""])
    func `what is no property list is told`(text: String) {
        #expect(throws: BundleError.self) {
            try PropertyListFile.members(Array(text.utf8), file: "x", limits: limits)
        }
    }
}
