import Foundation
import HeraldModel
import Testing

@testable import HeraldPhone

@Suite struct DeviceWordsTests {
    @Test(arguments: DeviceWords.languages)
    func `every language has every word, with the same parts to fill in`(language: String) throws {
        let words = DeviceWords(for: [language])
        let english = DeviceWords(for: [])
        #expect(words.language == language && (language == "en") == (words == english))
        for word in DeviceWord.allCases {
            let text = try #require(words.texts[word], "\(word)")
            #expect(!text.isEmpty)
            for part in ["{app}", "{count}", "{time}"] {
                #expect(text.contains(part) == english[word].contains(part), "\(word): \(text)")
            }
        }
        let decoded = try JSONDecoder().decode(DeviceWords.self, from: JSONEncoder().encode(words))
        #expect(decoded == words)
    }

    @Test(arguments: [
        (["de-AT", "en"], "de"), (["pt-BR", "es-MX"], "es"), (["zh_CN"], "zh-Hans"), (["zh-TW"], "en"), (["ar"], "en"),
    ])
    func `the first of the user's languages that the interface has is used, else English`(
        languages: [String],
        language: String
    ) {
        #expect(DeviceWords(for: languages).language == language)
    }

    @Test func `the device's own buttons follow its language, an app's own button does not`() throws {
        var kit = try PhoneKit()
        var switches = PhoneSwitches()
        switches.languages = ["de"]
        try kit.does(.set(switches))
        kit.receive(#"{"aps":{"alert":"a"}}"#)
        #expect(kit.newest?.buttons == ["Schließen", "Ansehen"])
        kit.receive(#"{"aps":{"alert":{"body":"a","action-loc-key":"GO"}}}"#)
        switches.languages = ["ja"]
        try kit.does(.set(switches))
        #expect(kit.snapshot.words.language == "ja")
        #expect(kit.snapshot.notifications.map(\.buttons) == [["閉じる", "GO"], ["閉じる", "表示"]])
    }
}
