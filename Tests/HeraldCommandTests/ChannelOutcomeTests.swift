import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldWeb
import Testing

@testable import HeraldCommand
@testable import HeraldService

struct ChannelOutcomeTests {
    private let id = ChannelID(high: 1, low: 2)

    private func check(_ outcome: CompletionOutcome) throws {
        let topic = try #require(Topic("com.example.app"))
        try ChannelOutcome.check(outcome, of: id, App(topic: topic, environment: .sandbox))
    }

    @Test func `what was stored is not an error`() throws {
        try check(.accepted)
    }

    @Test(arguments: [
        (RefusalReason.channelNotRegistered, AdminError.Code.notFound, "no channel AAAAAAAAAAEAAAAAAAAAAg=="),
        (.cannotCreateChannelConfig, .conflict, "com.example.app has as many in sandbox as channel-limit permits"),
    ])
    func `a refusal says what to do`(reason: RefusalReason, code: AdminError.Code, words: String) throws {
        let error = try #require(throws: AdminError.self) { try check(.refused(reason)) }
        #expect(error.code == code && error.message.contains(words))
    }

    @Test(arguments: [
        (CompletionOutcome.refused(.serviceUnavailable), "herald status"), (.unknown, "look at the list"),
    ])
    func `a store in trouble asks for patience`(outcome: CompletionOutcome, words: String) throws {
        let refusal = try #require(throws: WebRefusal.self) { try check(outcome) }
        #expect(refusal.status == 503 && refusal.message.contains(words))
    }

    @Test func `what is decided at once needs no wait`() async {
        #expect(await ChannelOutcome.wait { _ in .accepted } == .accepted)
        let refused = await ChannelOutcome.wait { _ in .refused(.channelNotRegistered, since: nil) }
        #expect(refused == .refused(.channelNotRegistered))
        let later = await ChannelOutcome.wait { completion in
            completion.settle(.unknown)
            return .pending
        }
        #expect(later == .unknown)
    }
}
