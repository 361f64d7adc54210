import Testing

@testable import HeraldPhone

@Suite struct FormatStringTests {
    @Test(
        arguments: [
            ("%@ and %@", ["a", "b"], "a and b"),
            ("%2$@ and %1$@", ["a", "b"], "b and a"),
            ("%1$@, %1$@", ["a"], "a, a"),
            ("100%% of %@", ["a"], "100% of a"),
            ("%@ and %@", ["a"], "a and "),
            ("%@", [], ""),
            ("%3$@.", ["a"], "."),
            ("%0$@.", ["a"], "."),
            ("%99999999999999999999$@.", ["a"], "."),
            ("plain", ["a", "b"], "plain"),
            ("%", ["a"], "%"),
            ("50% ", [], "50% "),
            ("%%@", ["a"], "%@"),
            ("%@", ["%@ %1$@"], "%@ %1$@"),
            ("%2$@ %@ %@", ["a", "b"], "b a b"),
            ("%d of %.2f", ["3", "4"], "3 of 4"),
            ("%#@files@ left", ["3"], "3 left"),
            ("%1$", ["a"], "%1$"),
            ("", [], ""),
        ] as [(String, [String], String)]
    )
    func `arguments take their places`(format: String, arguments: [String], text: String) {
        #expect(FormatString(format).filled(with: arguments) == text)
    }

    @Test(
        arguments: [
            ("plain 100%%", 0), ("%@ %@", 2), ("%2$@", 2), ("%1$@ %1$@", 1), ("%@ %3$@", 3), ("%d", 1), ("%%@", 0),
        ]
    )
    func `the arguments that it takes are counted`(format: String, count: Int) {
        #expect(FormatString(format).argumentCount == count)
    }

    @Test func `foreign conversions are listed`() {
        #expect(FormatString("%@ %d %1$ld %%d").foreignConversions == ["%d", "%1$ld"])
        #expect(FormatString("50% off").foreignConversions == ["% o"])
        #expect(FormatString("%@ %1$@").mixesOrders)
        #expect(!FormatString("%2$@ %1$@").mixesOrders)
    }

    @Test func `a text cannot grow beyond its limit`() {
        let format = FormatString(String(repeating: "%1$@", count: 1000))
        let text = format.filled(with: [String(repeating: "x", count: 4000)])
        #expect(text.utf8.count == FormatString.maximumBytes / 4000 * 4000)
    }
}
