import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldGateway

@Suite
struct `a connection in a drill` {
    let fixture: Fixture
    let connected: Connected
    /// Of one provider token: changing it often is a fault of its own.
    let fields: [(String, String)]

    init() async throws {
        fixture = try await Fixture()
        fields = try fixture.fields()
        connected = try Connected(fixture)
        try connected.open()
        _ = try connected.ask(fields)
        _ = try connected.sent()
        try connected.receive(RawPeer.settingsAcknowledgement)
    }

    private func start(
        _ kind: Drill.Kind,
        target: Drill.Target = .everybody,
        share: Double = 1,
        for duration: Duration = .seconds(60)
    ) {
        let drill = Drill(kind: kind, target: target, share: share, duration: duration, seed: 1)
        #expect(fixture.drills.start(drill) != nil)
    }

    private func goAways(_ frames: [RawFrame]) -> [(last: UInt32, text: String)] {
        frames.filter { $0.type == RawFrame.goAway }.map {
            (RawFrame.number($0.payload[...]), String(decoding: $0.payload[8...], as: UTF8.self))
        }
    }

    /// Sends requests in one burst, and takes what comes back.
    private func burst(_ streams: [UInt32]) throws -> [RawFrame] {
        try connected.receive(streams.flatMap { RawPeer.request($0, fields) })
        return try connected.sent()
    }

    @Test func `refuses with the reason, journals it, and explains it`() throws {
        start(.refuse(.tooManyRequests, retryAfter: .seconds(33)))
        let envelopes = fixture.post.envelopes.count
        let answer = try #require(try connected.ask(fields + [("herald-explain", "1")]))
        #expect(answer.status == "429")
        #expect(answer.fields["retry-after"] == "33")
        #expect(answer.body.contains("TooManyRequests") && answer.body.contains("drill 1"))
        #expect(fixture.post.discarded == [.refusedByDrill])
        #expect(fixture.post.envelopes.count == envelopes + 1)
    }

    @Test func `sends the timestamp of an unregistered token, as APNs does`() throws {
        start(.refuse(.unregistered, retryAfter: nil))
        let answer = try #require(try connected.ask(fields))
        #expect(answer.status == "410")
        #expect(answer.body == #"{"reason":"Unregistered","timestamp":\#(fixture.now.milliseconds)}"#)
    }

    @Test func `refuses with any status and text, and adds nothing to them`() throws {
        start(.refuseAs(status: 503, reason: "a \"tea\"\n", retryAfter: nil))
        let answer = try #require(try connected.ask(fields))
        #expect(answer.status == "503" && answer.fields["retry-after"] == nil)
        #expect(answer.body == #"{"reason":"a \"tea\"\n"}"#)
        #expect(answer.fields["content-type"] == "application/json" && answer.fields["apns-id"] != nil)
        let explained = try #require(try connected.ask(fields + [("herald-explain", "1")]))
        #expect(explained.body.hasPrefix(#"{"reason":"a \"tea\"\n","explanation":"drill 1 refuses it"#))
        #expect(explained.fields["herald-explanation"] == nil)
        #expect(fixture.post.discarded == [.refusedByDrill, .refusedByDrill])
    }

    @Test(arguments: [400, 418, 499, 500, 599])
    func `refuses without a body`(status: Int) throws {
        start(.refuseAs(status: status, reason: nil, retryAfter: .seconds(7)))
        let answer = try #require(try connected.ask(fields))
        #expect(answer.status == "\(status)" && answer.fields["retry-after"] == "7")
        #expect(answer.body.isEmpty && answer.isEnded && answer.fields["content-type"] == nil)
        let explained = try #require(try connected.ask(fields + [("herald-explain", "1")]))
        #expect(explained.body.isEmpty)
        #expect(explained.fields["herald-explanation"]?.hasPrefix("drill 1 refuses it") == true)
    }

    @Test(
        arguments: [
            (.reset(isAccepted: false), 2, [.lostByDrill], []),
            (.reset(isAccepted: true), 2, [], [.answerWithheldByDrill]), (.refuseStream, 7, [.refusedByDrill], []),
        ] as [(Drill.Kind, UInt32, [JournalState], [JournalState])]
    )
    func `resets the stream in place of an answer`(
        kind: Drill.Kind,
        code: UInt32,
        discarded: [JournalState],
        noted: [JournalState]
    ) throws {
        start(kind)
        let frames = try burst([11])
        #expect(frames.compactMap(\.errorCode) == [code])
        #expect(connected.peer.answers(frames).isEmpty)
        #expect(fixture.post.discarded == discarded && fixture.post.noted == noted)
        // More than a client may provoke, one after the other.
        let streams = stride(from: UInt32(13), to: 1013, by: 2)
        #expect(try streams.flatMap { try burst([$0]).compactMap(\.errorCode) } == streams.map { _ in code })
        _ = fixture.drills.stopAll()
        #expect(connected.peer.answers(try burst([1013])).mapValues(\.status) == [1013: "200"])
        // It holds no stop.
        connected.connection?.stop()
        #expect(goAways(try connected.sent()).map(\.last) == [1013])
        #expect(!connected.isOpen)
    }

    @Test func `resets the stream of an acceptance, not of a refusal`() throws {
        start(.reset(isAccepted: true))
        fixture.post.decide(.refused(.tooManyRequests, since: nil))
        #expect(try connected.ask(fields)?.status == "429")
        #expect(fixture.post.noted.isEmpty)
    }

    @Test func `fails the first requests, and then none`() throws {
        let drill = Drill(
            kind: .refuse(.serviceUnavailable, retryAfter: nil),
            first: 2,
            duration: .seconds(60),
            seed: 1
        )
        #expect(fixture.drills.start(drill)?.drill.description == "refuse with 503 ServiceUnavailable, 2 times")
        #expect(try (0..<4).map { _ in try connected.ask(fields)?.status } == ["503", "503", "200", "200"])
    }

    @Test func `a payload's drill fails its first requests, each payload by itself`() throws {
        fixture.drills.allowsPayloadDrills = true
        let body = Array(#"{"aps":{},"herald":{"drill":{"reason":"InternalServerError","first":1}}}"#.utf8)
        let other = Array(#"{"aps":{"badge":1},"herald":{"drill":{"reason":"InternalServerError","first":1}}}"#.utf8)
        let answers = try [body, body, other, body, other].map { try connected.ask(fields, body: $0)?.status }
        #expect(answers == ["500", "200", "500", "200", "200"])
        let wrong = Array(#"{"aps":{},"herald":{"drill":{"reason":"InternalServerError","first":0}}}"#.utf8)
        #expect(try connected.ask(fields + [("herald-explain", "1")], body: wrong)?.body.contains("first") == true)
    }

    @Test(arguments: [
        #"{"aps":{},"herald":{"drill":{"reason":"Unregistered"}}}"#, #"{"aps":{},"herald":{"drill":7}}"#,
        #"{"herald":{"tag":"t","drill":{}},"aps":{}}"#, #"{"aps":{},"herald":{"dril":{"reason":"Unregistered"}}}"#,
        #"{"aps":{},"herald":[{"drill":{"reason":"Unregistered"}}]}"#,
    ])
    func `a payload's drill where there may be none is told, and delivered`(payload: String) throws {
        let answer = try #require(try connected.ask(fields + [("herald-explain", "1")], body: Array(payload.utf8)))
        #expect(answer.status == "200")
        #expect(answer.fields["herald-explanation"]?.contains("herald.drill has no effect") == true)
        #expect(fixture.post.noted == [.drillUnheeded])
    }

    @Test(arguments: [
        #"{"aps":{}}"#, #"{"aps":{},"herald":{"tag":"drill"}}"#, #"{"aps":{},"herald":{"drill":null}}"#,
        #"{"aps":{"herald":{"drill":{}}}}"#, #"{"aps":{},"drill":"herald","x":"\"herald\":{"}"#,
    ])
    func `a payload without a drill is told nothing of drills`(payload: String) throws {
        let answer = try #require(try connected.ask(fields + [("herald-explain", "1")], body: Array(payload.utf8)))
        #expect(answer.fields["herald-explanation"]?.contains("drill") == false)
        #expect(fixture.post.noted.isEmpty)
    }

    @Test func `a refused payload's drill without effect is not on record`() throws {
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        _ = try connected.ask(fields, body: Array(#"{"aps":{},"herald":{"drill":{"reason":"Forbidden"}}}"#.utf8))
        #expect(fixture.post.noted.isEmpty)
    }

    @Test func `does not change the refusal of an invalid request`() throws {
        start(.refuse(.internalServerError, retryAfter: nil))
        #expect(try connected.ask(fields + [("apns-priority", "3")])?.status == "400")
        fixture.post.decide(.refused(.unregistered, since: fixture.now))
        #expect(try connected.ask(fields)?.status == "410")
    }

    @Test func `does not affect other requests`() throws {
        start(.refuse(.internalServerError, retryAfter: nil), target: .topic(topic("com.example.other")))
        #expect(try connected.ask(fields)?.status == "200")
    }

    @Test func `delays the answer, not the notification`() throws {
        start(.latency(.milliseconds(500) ... .milliseconds(500)))
        let envelopes = fixture.post.envelopes.count
        #expect(try connected.ask(fields) == nil)
        #expect(fixture.post.envelopes.count == envelopes + 1)
        connected.pass(.milliseconds(499))
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        connected.pass(.milliseconds(1))
        #expect(connected.peer.answers(try connected.sent()).values.map(\.status) == ["200"])
    }

    @Test func `a refusal for overload has its own words and a pause, and is held back for a second`() throws {
        fixture.post.decide(.refused(.serviceUnavailable, since: nil))
        fixture.post.isOverloaded = true
        #expect(try connected.ask(fields + [("herald-explain", "1")]) == nil)
        connected.pass(.milliseconds(900))
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        connected.pass(.milliseconds(250))
        let answer = try #require(connected.peer.answers(try connected.sent()).values.first)
        #expect(answer.status == "503" && answer.fields["retry-after"] == "1")
        #expect(answer.body.contains("faster than Herald can store them"))
        // No overload: no pause.
        fixture.post.isOverloaded = false
        #expect(try connected.ask(fields)?.fields["retry-after"] == "10")
    }

    @Test func `many refusals for overload come in their order, and at once when the service stops`() throws {
        fixture.post.decide(.refused(.serviceUnavailable, since: nil))
        fixture.post.isOverloaded = true
        #expect(connected.peer.answers(try burst(Array(stride(from: 101, through: 139, by: 2)))).isEmpty)
        connected.connection?.stop()
        #expect(connected.peer.answers(try connected.sent()).values.map(\.status) == Array(repeating: "503", count: 20))
    }

    @Test func `delays the answer of an early completion, and no other`() throws {
        start(.latency(.seconds(1) ... .seconds(1)))
        let kept = Kept()
        fixture.post.settle { kept.envelope = $0 }
        #expect(try connected.ask(fields) == nil)
        connected.pass(.seconds(2))
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        kept.envelope?.completion?.settle(.accepted)
        #expect(connected.peer.answers(try connected.sent()).values.map(\.status) == ["200"])
    }

    @Test func `sends delayed answers when the service stops`() throws {
        start(.latency(.seconds(60) ... .seconds(60)))
        #expect(try connected.ask(fields) == nil)
        connected.connection?.stop()
        let frames = try connected.sent()
        #expect(goAways(frames).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(connected.peer.answers(frames).values.map(\.status) == ["200"])
    }

    @Test func `delays nothing once the service stops`() throws {
        start(.latency(.seconds(60) ... .seconds(60)))
        let kept = Kept()
        fixture.post.settle { kept.envelope = $0 }
        #expect(try connected.ask(fields) == nil)
        connected.connection?.stop()
        kept.envelope?.completion?.settle(.accepted)
        let frames = try connected.sent()
        #expect(connected.peer.answers(frames).values.map(\.status) == ["200"])
        #expect(goAways(frames).map(\.text) == [#"{"reason":"Shutdown"}"#])
    }

    @Test func `withholds acceptances, not refusals`() throws {
        start(.silence(isAccepted: true))
        fixture.post.decide(.refused(.tooManyRequests, since: nil))
        #expect(try connected.ask(fields)?.status == "429")
        fixture.post.settle { $0.completion?.settle(.refused(.serviceUnavailable)) }
        #expect(try connected.ask(fields)?.status == "503")
        #expect(fixture.post.noted == [])
    }

    @Test func `never answers, and loses or accepts as configured`() throws {
        start(.silence(isAccepted: false))
        #expect(try connected.ask(fields) == nil)
        #expect(fixture.post.discarded == [.lostByDrill])
        _ = fixture.drills.stopAll()
        start(.silence(isAccepted: true))
        let envelopes = fixture.post.envelopes.count
        #expect(try connected.ask(fields) == nil)
        #expect(fixture.post.envelopes.count == envelopes + 1)
        #expect(fixture.post.noted == [.answerWithheldByDrill])
        _ = fixture.drills.stopAll()
        connected.pass(.hours(1))
        #expect(connected.peer.answers(try connected.sent()).isEmpty)
        #expect(try connected.ask(fields)?.status == "200")
        // What is never answered does not hold a stop.
        connected.connection?.stop()
        #expect(goAways(try connected.sent()).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(!connected.isOpen)
    }

    @Test func `sends GOAWAY within a batch, and ignores the requests after it`() throws {
        start(.goAway(.shutdown))
        let envelopes = fixture.post.envelopes.count
        let frames = try burst([11, 13, 15, 17])
        #expect(goAways(frames).map(\.last) == [11])
        #expect(goAways(frames).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(connected.peer.answers(frames).mapValues(\.status) == [11: "200"])
        #expect(fixture.post.envelopes.count == envelopes + 1)
        #expect(!connected.isOpen)
    }

    @Test func `answers earlier requests after a GOAWAY`() throws {
        let kept = Kept()
        fixture.post.settle { kept.envelope = $0 }
        _ = try burst([11])
        let first = kept.envelope
        start(.goAway(nil))
        #expect(goAways(try burst([13])).map(\.last) == [13])
        #expect(connected.isOpen)
        _ = try burst([15])
        first?.completion?.settle(.accepted)
        kept.envelope?.completion?.settle(.accepted)
        let frames = try connected.sent()
        #expect(connected.peer.answers(frames).mapValues(\.status) == [11: "200", 13: "200"])
        #expect(!connected.isOpen)
    }

    private let pong = RawFrame(RawFrame.ping, flags: 1, Array(repeating: 0, count: 8)).bytes

    @Test func `sends GOAWAY in two steps, and answers what comes in between`() throws {
        let kept = Kept()
        fixture.post.settle { kept.envelope = $0 }
        _ = try burst([11])
        let first = kept.envelope
        fixture.post.settle { $0.completion?.settle(.accepted) }
        start(.goAway(.shutdown, isTwoStep: true))
        var frames = try burst([13, 15])
        #expect(goAways(frames).map(\.last) == [0x7FFF_FFFF])
        #expect(goAways(frames).map(\.text) == [""])
        // Before it, the PING would say nothing.
        #expect(
            frames.map(\.type).filter { $0 == RawFrame.goAway || $0 == RawFrame.ping } == [
                RawFrame.goAway, RawFrame.ping,
            ]
        )
        #expect(connected.peer.answers(frames).mapValues(\.status) == [13: "200", 15: "200"])
        frames = try burst([17])
        #expect(goAways(frames).isEmpty && connected.peer.answers(frames)[17]?.status == "200")
        // What arrives with the PING's answer was sent before it was known that it is too late.
        try connected.receive(pong + RawPeer.request(19, fields))
        frames = try connected.sent()
        #expect(goAways(frames).map(\.last) == [19])
        #expect(goAways(frames).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(connected.peer.answers(frames)[19]?.status == "200")
        let envelopes = fixture.post.envelopes.count
        #expect(try burst([21]).isEmpty && fixture.post.envelopes.count == envelopes && connected.isOpen)
        first?.completion?.settle(.accepted)
        #expect(connected.peer.answers(try connected.sent()).mapValues(\.status) == [11: "200"])
        #expect(!connected.isOpen)
    }

    @Test func `sends the second GOAWAY after a time to a client that answers no PING`() throws {
        start(.goAway(nil, isTwoStep: true))
        #expect(goAways(try burst([11])).map(\.last) == [0x7FFF_FFFF])
        connected.pass(.seconds(4))
        #expect(goAways(try burst([13])).isEmpty && connected.isOpen)
        connected.pass(.seconds(2))
        #expect(goAways(try connected.sent()).map(\.last) == [13])
        #expect(!connected.isOpen)
    }

    @Test func `a stop ends a connection between two GOAWAYs at once`() throws {
        start(.goAway(.internalServerError, isTwoStep: true))
        _ = try burst([11])
        connected.connection?.stop()
        #expect(goAways(try connected.sent()).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(!connected.isOpen)
    }

    @Test func `a PING's answer without that drill ends nothing`() throws {
        try connected.receive(pong)
        #expect(try connected.sent().isEmpty && connected.isOpen)
    }

    @Test func `drops the connection without GOAWAY`() throws {
        start(.drop)
        let frames = try burst([11, 13])
        #expect(frames.isEmpty)
        #expect(!connected.isOpen)
        #expect(fixture.post.discarded == [.lostByDrill])
    }

    @Test func `shuts the connection down as when the service stops`() throws {
        start(.shutdown)
        let frames = try burst([11, 13])
        let answers = connected.peer.answers(frames)
        #expect(answers.mapValues(\.status) == [11: "503", 13: "503"])
        #expect(answers[13]?.body == #"{"reason":"Shutdown"}"#)
        #expect(goAways(frames).map(\.text) == [#"{"reason":"Shutdown"}"#])
        #expect(!connected.isOpen)
    }

    @Test func `announces another number of streams, and the usual one after the drill`() throws {
        func streams() throws -> [UInt32] {
            try connected.sent().filter { $0.type == RawFrame.settings && !$0.isAcknowledgement }
                .compactMap { Exchange.settings($0)[3] }
        }
        start(.streams(1, period: nil), for: .seconds(60))
        connected.pass(.seconds(2))
        #expect(try streams() == [1])
        fixture.trust.clock.advance(by: .seconds(61))
        connected.pass(.seconds(2))
        #expect(try streams() == [1000])
    }

    @Test func `performs the drill of a payload if the operator allows it`() throws {
        let body = Array(#"{"aps":{},"herald":{"drill":{"reason":"Unregistered"}}}"#.utf8)
        #expect(try connected.ask(fields, body: body)?.status == "200")
        fixture.drills.allowsPayloadDrills = true
        #expect(try connected.ask(fields, body: body)?.status == "410")
        let wrong = Array(#"{"aps":{},"herald":{"drill":{"reason":"Unregisterd"}}}"#.utf8)
        #expect(try connected.ask(fields, body: wrong)?.body.contains("BadPayload") == true)
        #expect(try connected.ask(fields)?.status == "200")
    }

    @Test func `a drill that is over by the service's clock hits nothing`() throws {
        start(.refuse(.internalServerError, retryAfter: nil), for: .seconds(60))
        #expect(try connected.ask(fields)?.status == "500")
        fixture.trust.clock.advance(by: .seconds(61))
        #expect(try connected.ask(fields)?.status == "200")
        #expect(fixture.drills.reports.isEmpty)
        #expect(!fixture.drills.isOn)
    }

    /// An envelope that a test answers when it likes; on the test's own thread.
    private final class Kept: @unchecked Sendable {
        // Invariant: read and written on the thread of the test, which is the embedded loop's.
        var envelope: Envelope?
    }
}
