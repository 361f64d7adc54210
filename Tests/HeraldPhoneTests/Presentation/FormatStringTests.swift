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

    @Test(arguments: [
        "\u{200D}", "\u{200C}", "\u{301}", "\u{E31}", "\u{93F}", "\u{FE0F}", "\u{20E3}", "\u{64B}", "\u{3099}",
    ])
    func `a specifier ends with its last scalar`(mark: String) {
        func codes(_ text: String) -> [UInt32] { text.unicodeScalars.map(\.value) }
        let format = FormatString("%@\(mark)%2$@\(mark)%d\(mark)%1$lld\(mark)%%\(mark)%.2f\(mark)%\(mark)%#@n@\(mark)")
        let text = format.filled(with: ["a", "b", "c", "d"])
        #expect(codes(text) == codes("a\(mark)b\(mark)b\(mark)a\(mark)%\(mark)c\(mark)%\(mark)d\(mark)"))
        #expect(format.foreignConversions == ["%d", "%1$lld", "%.2f"] && format.argumentCount == 4)
    }

    @Test func `an argument that combines with the text before it is whole`() {
        let text = FormatString("e%@").filled(with: ["\u{301}"])
        #expect(Array(text.unicodeScalars.map(\.value)) == [0x65, 0x301])
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
