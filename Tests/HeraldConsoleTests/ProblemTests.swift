import Foundation
import Testing

@testable import HeraldConsole

@Suite struct ProblemTests {
    private let disk = ProblemFinding(.disk, "little room")
    private let drill = ProblemFinding(.drill, of: "3", "drill 3: refuse")

    @Test func `a problem lasts from its first to its last finding`() {
        var book = ProblemBook()
        let changed1 = book.update([disk], at: "1")
        #expect(changed1)
        let changed2 = book.update([disk], at: "2")
        #expect(!changed2)
        #expect(book.present.map(\.since) == ["1"])
        let changed3 = book.update([disk, drill], at: "3")
        #expect(changed3)
        let changed4 = book.update([drill], at: "4")
        #expect(changed4)
        #expect(book.present.map(\.kind) == [.drill])
        #expect(book.history.map(\.kind) == [.drill, .disk])
        #expect(book.history.map(\.until) == [nil, "4"])
    }

    @Test func `a problem with another text is the same one`() {
        var book = ProblemBook()
        _ = book.update([disk], at: "1")
        let changed5 = book.update([ProblemFinding(.disk, "less room")], at: "2")
        #expect(changed5)
        #expect(book.present.map(\.what) == ["less room"])
        #expect(book.present.map(\.since) == ["1"])
    }

    @Test func `problems and history are limited`() {
        var book = ProblemBook()
        let many = (0..<500).map { ProblemFinding(.drill, of: "\($0)", "drill \($0)") }
        _ = book.update(many, at: "1")
        #expect(book.present.count == 100)
        for round in 0..<5 {
            _ = book.update([], at: "\(round)")
            _ = book.update(many, at: "\(round)")
        }
        #expect(book.history.count == 300)
    }

    @Test func `every kind has words, and a place in the manual that exists`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        for kind in ProblemKind.allCases {
            #expect(kind.why.hasSuffix(".") && kind.action.hasSuffix("."), "\(kind)")
            let parts = kind.link.split(separator: "#", maxSplits: 1)
            let text = try String(contentsOf: root.appendingPathComponent(String(parts[0])), encoding: .utf8)
            guard parts.count == 2 else { continue }
            let anchors = text.split(separator: "\n").filter { $0.hasPrefix("#") }.map { line in
                line.drop { $0 == "#" || $0 == " " }.lowercased().replacing(" ", with: "-")
                    .filter { $0.isLetter || $0.isNumber || $0 == "-" }
            }
            #expect(anchors.contains(String(parts[1])), "\(kind.link)")
        }
    }
}
