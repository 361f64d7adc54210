import HeraldWire
import Testing

struct MQTTReasonWordsTests {
    @Test func `every reason code has words of its own, which are not the standard's names`() {
        let words = MQTTReasonCode.allCases.map(\.words)
        #expect(Set(words).count == words.count)
        for code in MQTTReasonCode.allCases where code != .success {
            #expect(code.words.contains(" "))
            #expect(code.words != "\(code)")
        }
    }
}
