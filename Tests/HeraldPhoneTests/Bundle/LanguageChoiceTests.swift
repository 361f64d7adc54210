import Testing

@testable import HeraldPhone

@Suite struct LanguageChoiceTests {
    @Test(
        arguments: [
            (["de", "en", "fr"], ["fr"], "fr"),
            (["de", "en", "fr"], ["fr-CA"], "fr"),
            (["en", "fr-CA"], ["fr"], "fr-CA"),
            (["en", "fr", "fr-CA"], ["fr-CA", "en"], "fr-CA"),
            (["en", "fr"], ["it", "fr"], "fr"),
            (["en", "fr"], ["it"], "en"),
            (["de", "fr"], ["it"], "de"),
            (["zh-Hans", "zh-Hant", "en"], ["zh-TW"], "zh-Hant"),
            (["zh-Hans", "en"], ["zh-Hant-HK"], "en"),
            (["zh_CN", "en"], ["zh-Hans-CN"], "zh_CN"),
            (["pt-BR", "pt-PT", "en"], ["pt-AO"], "pt-PT"),
            (["pt-BR", "pt-PT", "en"], ["pt"], "pt-BR"),
            (["en", "es", "es-419"], ["es-MX"], "es-419"),
            (["en", "es", "es-419"], ["es-ES"], "es"),
            (["en", "es"], ["es-MX"], "es"),
            (["en", "en-GB"], ["en-AU"], "en-GB"),
            (["en", "en-GB"], ["en-US"], "en"),
            (["English", "French"], ["fr-FR"], "French"),
            (["en", "nb"], ["no"], "nb"),
            (["en", "sr", "sr-Latn"], ["sr-Latn-RS"], "sr-Latn"),
        ] as [([String], [String], String)]
    )
    func `the first available preference is chosen`(available: [String], preferences: [String], chosen: String) {
        #expect(LanguageChoice.choose(from: available, preferences: preferences, development: "en") == chosen)
    }

    @Test func `nothing is chosen from nothing`() {
        #expect(LanguageChoice.choose(from: [], preferences: ["en"], development: "en") == nil)
        #expect(LanguageChoice.choose(from: [""], preferences: ["", "-"], development: "") == "")
    }
}
