import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldGateway

struct CatchServiceTests {
    let clock = ManualClock()
    let log = LogNotes()

    private func service(_ limits: CatchLimits = CatchLimits()) -> CatchService {
        CatchService(limits: limits, clock: clock, logger: log.logger)
    }

    private func message(_ text: String) -> CaughtMessage {
        CaughtMessage(
            time: clock.now(),
            environment: .production,
            topic: Topic("com.example.app"),
            sender: nil,
            payload: Array(text.utf8)
        )
    }

    private func texts(_ service: CatchService, after number: UInt64 = 0) -> [String] {
        service.messages(after: number).messages.map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test func `the newest messages win, by number`() {
        var limits = CatchLimits()
        limits.messages = 3
        let service = service(limits)
        for number in 1...5 { service.keep(message("\(number)")) }
        #expect(texts(service) == ["5", "4", "3"])
        #expect(service.messages().last == 5)
        #expect(texts(service, after: 4) == ["5"])
    }

    @Test func `the newest messages win, by bytes, and one is always kept`() {
        var limits = CatchLimits()
        limits.bytes = 2000
        let service = service(limits)
        for text in ["a", "b", "c"] { service.keep(message(String(repeating: text, count: 300))) }
        #expect(texts(service).map(\.first) == ["c", "b"])
        service.keep(message(String(repeating: "d", count: 3000)))
        #expect(texts(service).map(\.first) == ["d"])
        #expect(service.state.bytes > 3000)
        var foreign = message("e")
        foreign.unopenedToken = String(repeating: "f", count: 4000)
        service.keep(foreign)
        #expect(service.state.bytes > 4000)
    }

    @Test func `removed messages leave their memory to others`() {
        var limits = CatchLimits()
        limits.messages = 2
        let service = service(limits)
        for text in ["1", "2"] { service.keep(message(text)) }
        #expect(service.remove { $0.payload == Array("1".utf8) } == 1)
        service.keep(message("3"))
        #expect(texts(service) == ["3", "2"])
        #expect(service.remove { _ in true } == 2)
        #expect(service.state.messages == 0 && service.state.bytes == 0)
    }

    @Test func `a message is kept for a day`() {
        let service = service()
        service.keep(message("old"))
        clock.advance(by: .seconds(23 * 3600))
        service.keep(message("new"))
        clock.advance(by: .seconds(2 * 3600))
        #expect(texts(service) == ["new"])
    }

    @Test func `catching ends in time and keeps its messages, and off forgets them`() {
        let service = service()
        service.start(.all, for: .seconds(60))
        #expect(service.isCatching && service.catches(nil))
        service.keep(message("kept"))
        clock.advance(by: .seconds(61))
        service.tick()
        #expect(!service.isCatching && service.state.scope == .off)
        #expect(texts(service) == ["kept"])
        service.start(.off)
        #expect(texts(service).isEmpty)
    }

    @Test func `an app is caught with all its forms`() throws {
        let service = service()
        service.start(.topics([try #require(Topic("com.example.app"))]))
        #expect(service.catches(Topic("com.example.app.voip")) && service.catches(Topic("com.example.app")))
        #expect(!service.catches(Topic("com.example.apple")) && !service.catches(nil))
    }

    @Test func `the log is told each hour, and never of a payload`() {
        let service = service()
        service.start(.all)
        service.keep(message("secret"))
        service.tick()
        let before = log.all.count
        clock.advance(by: .seconds(3600))
        service.tick()
        service.tick()
        #expect(before == 1 && log.all.count == 2)
        #expect(log.all.allSatisfy { $0.contains("caught in memory") && !$0.contains("secret") })
    }

    @Test func `a message wakes those who wait, as many as may`() async throws {
        var limits = CatchLimits()
        limits.waiting = 1
        let service = service(limits)
        let stream = try #require(service.arrivals())
        #expect(service.arrivals() == nil)
        service.keep(message("1"))
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() != nil)
    }
}
