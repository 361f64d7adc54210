import Testing

@testable import HeraldPhone

@Suite struct StringsFileTests {
    private func read(_ text: String) throws -> [TextKey: String] {
        try StringsFile.read(Array(text.utf8), file: "x.strings")
    }

    @Test func `keys and texts, comments and spaces`() throws {
        let text = """
            /* A "comment"; with = all */
            "A" = "one";// more
            "B"="two" ;
            bare_key.1 = 'single';
            "SAME";
            """
        #expect(try read(text) == ["A": "one", "B": "two", "bare_key.1": "single", "SAME": "SAME"])
        #expect(try read("") == [:])
        #expect(try read("{ \"A\" = \"b\"; }") == ["A": "b"])
    }

    @Test func `escapes`() throws {
        let text = #""K" = "a\nb\tc\"d\"\\e\'f\U4f60\Ud83d\Ude00\101\q";"#
        #expect(try read(text) == ["K": "a\nb\tc\"d\"\\e'f你😀Aq"])
        #expect(try read("\"K\" = \"lone \\Ud83d\";") == ["K": "lone \u{FFFD}"])
    }

    @Test(arguments: ["\u{200D}", "\u{301}", "\u{E31}", "\u{FE0F}", "\u{64B}"])
    func `what combines with a quotation mark or an escape is text`(mark: String) throws {
        let text = "\"\(mark)K\(mark)\" = \"\(mark)a\\\"\(mark)\\n\(mark)%@\(mark)\"; \"B\" = 'b\(mark)';"
        let texts = try read(text)
        #expect(texts.count == 2 && texts["B"] == "b\(mark)")
        #expect(
            texts["\(mark)K\(mark)"]?.unicodeScalars.elementsEqual("\(mark)a\"\(mark)\n\(mark)%@\(mark)".unicodeScalars)
                == true
        )
    }

    @Test func `keys that differ by normalization only are two keys`() throws {
        let texts = try read("\"\u{E9}\" = \"one\"; \"e\u{301}\" = \"two\";")
        #expect(texts.count == 2 && texts["\u{E9}"] == "one" && texts["e\u{301}"] == "two")
        var bundle = AppBundle()
        bundle.texts = ["en": ["\u{E9}": LocalizedText(format: "one")]]
        #expect(bundle.text("\u{E9}", in: "en")?.format == "one" && bundle.text("e\u{301}", in: "en") == nil)
    }

    @Test func `UTF-16 in both byte orders, with and without a mark, and a mark of UTF-8`() throws {
        let text = "\"GRÜSSE\" = \"你好 😀\";"
        let little = text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        for bytes in [[0xFF, 0xFE] + little, [0xFE, 0xFF] + big, little, big, [0xEF, 0xBB, 0xBF] + Array(text.utf8)] {
            #expect(try StringsFile.read(bytes, file: "x") == ["GRÜSSE": "你好 😀"])
        }
    }

    @Test(
        arguments: [
            ("\"A\" = \"one\"\n\"B\" = \"two\";", "line 2: expected ; after the text of \"A\""),
            ("\"A\" \"one\";", "line 1: expected = after \"A\""),
            ("\n\"A\" = \"one;\n", "line 2: a text that begins here has no closing quote"),
            ("/* never closed", "line 1: a comment that begins here has no end"),
            ("\"A\" = ;", "line 1: expected a text in quotes"),
            ("\"A\" = \"\\Uxyz\";", "line 1: expected hexadecimal digits after \\U"),
            ("\"A\" = \"\\U\u{FF14}f60\";", "line 1: expected hexadecimal digits after \\U"),
            ("\"A\" = \"\\377\";", "line 1: write non-ASCII characters themselves, not as octal escapes"),
            ("\"A\" = \"\\", "line 1: ends within an escape"),
        ]
    )
    func `the error of a damaged file has the line`(text: String, message: String) {
        let error = #expect(throws: BundleError.self) { try read(text) }
        #expect(error?.description == "x.strings: \(message)")
    }

    @Test func `other encodings are errors`() {
        #expect(throws: BundleError.self) { try StringsFile.read([0x22, 0xFC, 0x22, 0x3B], file: "x") }
        #expect(throws: BundleError.self) { try StringsFile.read([0xFF, 0xFE, 0x22], file: "x") }
    }

    @Test func `no damage of a good file traps`() throws {
        let good = Array(#"{"A"="x\U4f60\101";/*c*/b;'c'=d;}"#.utf8)
        for index in good.indices {
            for byte in [0, 0x22, 0x5C, 0x2F, 0x2A, 0xFF] as [UInt8] {
                var bad = good
                bad[index] = byte
                _ = try? StringsFile.read(bad, file: "x")
                _ = try? StringsFile.read(Array(good[..<index]), file: "x")
            }
        }
    }
}
