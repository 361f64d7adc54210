import Foundation
import Testing

@testable import HeraldRelay

@Suite struct RowReasonTests {
    @Test func `the manual has every reason that the relay writes, and no other`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let manual = try String(contentsOf: root.appendingPathComponent("docs/relay.md"), encoding: .utf8)
        let start = try #require(manual.firstRange(of: "| reason | the row is | because |\n|---|---|---|\n"))
        let table = manual[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
            .prefix { $0.hasPrefix("|") }.map(String.init)
        let expected = RowReason.allCases.sorted { $0.rawValue < $1.rawValue }
            .map { "| `\($0.rawValue)` | \($0.fate) | \($0.meaning) |" }
        #expect(table == expected, "write these rows:\n\(expected.joined(separator: "\n"))")
    }

    @Test func `a reason is one word, and its meaning one sentence`() {
        for reason in RowReason.allCases {
            #expect(reason.rawValue.utf8.allSatisfy { Character(UnicodeScalar($0)).isLetter })
            #expect(!reason.meaning.hasSuffix(".") && !reason.meaning.contains("\n"), "\(reason)")
        }
    }
}

extension RowReason {
    /// The status of a row with this reason, now and in the end.
    fileprivate var fate: String {
        switch self {
        case .giveUpAt: "expired"
        case .noCredential, .badRequest, .partsDeleted: "failed"
        case .sentInPart: "sent"
        case .uncertain: "queued, then expired or failed"
        case .badAnswer, .badCredential, .overloaded, .proxyRefused, .stopped, .store, .timedOut, .unreachable,
            .untrusted:
            "queued, then expired"
        default: "refused"
        }
    }
}
