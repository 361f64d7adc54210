import HeraldModel
import NIOCore
import Testing

@testable import HeraldGateway

@Suite
struct `active drills` {
    private static let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
    private let subject = DrillSubject(slot: slot, topic: topic("com.example.app"))
    private let begin = DrillMoment(wall: WallTime(seconds: 1000), uptime: .uptimeNanoseconds(5_000_000_000))

    private func later(_ seconds: Int64, wall: Int64? = nil) -> DrillMoment {
        DrillMoment(
            wall: begin.wall + .seconds(wall ?? seconds),
            uptime: begin.uptime + .seconds(seconds)
        )
    }

    private func drill(
        _ kind: Drill.Kind = .refuse(.unregistered, retryAfter: nil),
        _ target: Drill.Target = .everybody,
        share: Double = 1,
        first: Int? = nil,
        for seconds: Int = 60,
        isLease: Bool = false,
        seed: UInt64 = 1
    ) -> Drill {
        Drill(
            kind: kind,
            target: target,
            share: share,
            first: first,
            duration: .seconds(seconds),
            isLease: isLease,
            seed: seed
        )
    }

    private func victims(_ drill: Drill, of count: Int = 1000) -> [Int] {
        var drills = ActiveDrills()
        _ = drills.start(drill, isConfigured: false, now: begin)
        return (0..<count).filter { _ in drills.judge(subject, now: begin) != nil }
    }

    @Test func `hits nothing without a drill`() {
        var drills = ActiveDrills()
        #expect(drills.judge(subject, now: begin) == nil)
    }

    @Test func `has the same victims for the same seed and order, and others for another seed`() {
        let first = victims(drill(share: 0.2, seed: 7))
        #expect(first == victims(drill(share: 0.2, seed: 7)))
        #expect(first != victims(drill(share: 0.2, seed: 8)))
        #expect((150...250).contains(first.count))
    }

    @Test func `has the same victims whatever other drills are on`() {
        var drills = ActiveDrills()
        _ = drills.start(
            drill(.latency(.seconds(1) ... .seconds(2)), share: 0.5, seed: 3),
            isConfigured: false,
            now: begin
        )
        _ = drills.start(drill(share: 0.2, seed: 7), isConfigured: false, now: begin)
        let hit = (0..<1000).filter { _ in drills.judge(subject, now: begin)?.verdict.outcome != nil }
        #expect(hit == victims(drill(share: 0.2, seed: 7)))
    }

    @Test func `of several drills with one seed each has victims of its own`() {
        var drills = ActiveDrills()
        _ = drills.start(drill(share: 0.2, seed: 7), isConfigured: false, now: begin)
        _ = drills.start(drill(.drop, share: 0.1, seed: 7), isConfigured: false, now: begin)
        let outcomes = (0..<1000).compactMap { _ in drills.judge(subject, now: begin)?.verdict.outcome }
        #expect(outcomes.count { $0 == .drop } > 40)
    }

    @Test func `hits all, nearly all, or nearly none, as the share says`() {
        #expect(victims(drill(share: 1)).count == 1000)
        #expect(victims(drill(share: 0.99)).count > 970)
        #expect(victims(drill(share: 0.001), of: 20_000).count < 60)
    }

    @Test func `fails a number of times, and then succeeds`() {
        #expect(victims(drill(first: 2), of: 5) == [0, 1])
        #expect(victims(drill(share: 0.2, first: 3, seed: 7)) == Array(victims(drill(share: 0.2, seed: 7)).prefix(3)))
        #expect(victims(drill(.latency(.zero ... .zero), first: 1), of: 3) == [0])
    }

    @Test func `drills with a number make a list of answers`() {
        var drills = ActiveDrills()
        for (reason, first) in [(RefusalReason.tooManyRequests, 2), (.serviceUnavailable, 1)] {
            _ = drills.start(drill(.refuse(reason, retryAfter: nil), first: first), isConfigured: false, now: begin)
        }
        let answers = (0..<5).map { _ in drills.judge(subject, now: begin)?.verdict.outcome }
        let (many, away) = (
            Drill.Kind.refuse(.tooManyRequests, retryAfter: nil),
            Drill.Kind.refuse(.serviceUnavailable, retryAfter: nil)
        )
        #expect(answers == [many, many, away, nil, nil])
        #expect(drills.entries.map(\.hits) == [2, 1])
    }

    @Test func `a lease lasts as long as it is renewed, whatever the service's clock does`() {
        var drills = ActiveDrills()
        let entry = drills.start(drill(for: 30, isLease: true), isConfigured: false, now: begin)
        #expect(entry?.isOver(at: later(29, wall: 100_000)) == false)
        let renewed = drills.renew(1, now: later(29, wall: 100_000))
        #expect(renewed != nil)
        #expect(drills.entries.first?.isOver(at: later(58, wall: -5)) == false)
        #expect(drills.entries.first?.isOver(at: later(59)) == true)
        let none = drills.renew(2, now: begin)
        _ = drills.start(drill(), isConfigured: false, now: begin)
        let timed = drills.renew(2, now: begin)
        #expect(none == nil && timed == nil)
    }

    @Test func `drills of payloads count each payload for each device token, and forget the oldest`() {
        var counts = PayloadDrillCounts()
        let other = Slot(device: DeviceNumber(2), app: AppNumber(1))
        let slot = subject.slot
        let taken = (0..<3).map { _ in counts.take(slot, [1], first: 2) }
        #expect(taken == [true, true, false])
        let others = [counts.take(slot, [2], first: 1), counts.take(other, [1], first: 1)]
        #expect(others == [true, true])
        for number in 0..<DrillLimits.countedPayloads { _ = counts.take(slot, Array("\(number)".utf8), first: 1) }
        let isForgotten = counts.take(slot, [1], first: 2)
        #expect(isForgotten)
    }

    @Test func `counts only the requests that a drill could hit`() {
        let target = Drill.Target.topic(topic("com.example.app"))
        var drills = ActiveDrills()
        _ = drills.start(
            drill(.refuse(.unregistered, retryAfter: nil), target, share: 0.2, seed: 7),
            isConfigured: false,
            now: begin
        )
        let other = DrillSubject(slot: Self.slot, topic: topic("com.example.other"))
        let hit = (0..<1000).filter { _ in
            #expect(drills.judge(other, now: begin) == nil)
            return drills.judge(subject, now: begin) != nil
        }
        #expect(hit == victims(drill(share: 0.2, seed: 7)))
    }

    @Test func `tells topics and tokens apart`() {
        let elsewhere = Slot(device: DeviceNumber(2), app: AppNumber(1))
        var drills = ActiveDrills()
        _ = drills.start(drill(.drop, .slot(Self.slot)), isConfigured: false, now: begin)
        #expect(drills.judge(subject, now: begin)?.verdict.outcome == .drop)
        #expect(drills.judge(DrillSubject(slot: elsewhere, topic: subject.topic), now: begin) == nil)
        #expect(drills.judge(DrillSubject(slot: elsewhere, topic: nil), now: begin) == nil)
    }

    @Test func `ends a drill by whichever clock is first`() {
        var drills = ActiveDrills()
        let entry = drills.start(drill(for: 60), isConfigured: false, now: begin)
        #expect(entry?.isOver(at: later(59)) == false)
        #expect(entry?.isOver(at: later(60)) == true)
        // The service's clock is moved ahead, and back.
        #expect(entry?.isOver(at: later(1, wall: 3600)) == true)
        #expect(entry?.isOver(at: later(60, wall: -3600)) == true)
        #expect(drills.judge(subject, now: later(1, wall: 3600)) == nil)
        #expect(drills.stop { $0.isOver(at: later(60)) }.map(\.id) == [1])
        #expect(drills.entries.isEmpty)
    }

    @Test func `holds as many drills as it may, and numbers them on`() {
        var drills = ActiveDrills()
        for id in 1...DrillLimits.count {
            #expect(drills.start(drill(), isConfigured: false, now: begin)?.id == id)
        }
        #expect(drills.start(drill(), isConfigured: false, now: begin) == nil)
        #expect(drills.stop { $0.id == 3 }.count == 1)
        #expect(drills.start(drill(), isConfigured: false, now: begin)?.id == DrillLimits.count + 1)
    }

    @Test func `the oldest of several ends a request, and waiting goes with it`() throws {
        var drills = ActiveDrills()
        _ = drills.start(drill(.refuse(.tooManyRequests, retryAfter: .seconds(30))), isConfigured: false, now: begin)
        _ = drills.start(drill(.drop), isConfigured: false, now: begin)
        _ = drills.start(drill(.latency(.seconds(2) ... .seconds(2))), isConfigured: false, now: begin)
        let judged = drills.judge(subject, now: begin)
        let (verdict, hits) = try #require(judged)
        #expect(verdict.outcome == .refuse(.tooManyRequests, retryAfter: .seconds(30)))
        #expect(verdict.latency == .seconds(2))
        #expect(verdict.cause == "drill 1")
        #expect(hits == ["refuse", "latency"])
        #expect(drills.entries.map(\.hits) == [1, 0, 1])
    }

    @Test func `draws latencies from the whole range`() {
        var drills = ActiveDrills()
        let range: ClosedRange<Duration> = .milliseconds(200) ... .seconds(2)
        _ = drills.start(drill(.latency(range)), isConfigured: false, now: begin)
        let drawn = (0..<500).compactMap { _ in drills.judge(subject, now: begin)?.verdict.latency }
        #expect(drawn.allSatisfy(range.contains))
        #expect(drawn.contains { $0 < .milliseconds(400) } && drawn.contains { $0 > .milliseconds(1800) })
    }

    @Test func `announces few streams, or in turn few and the usual number`() {
        var drills = ActiveDrills()
        #expect(drills.streams(at: begin) == nil)
        _ = drills.start(drill(.streams(5, period: .seconds(10))), isConfigured: false, now: begin)
        #expect([0, 9, 10, 19, 20].map { drills.streams(at: later($0)) } == [5, 5, nil, nil, 5])
        _ = drills.start(drill(.streams(9, period: nil)), isConfigured: false, now: begin)
        #expect([0, 10].map { drills.streams(at: later($0)) } == [5, 9])
        #expect(drills.streams(at: later(60)) == nil)
        #expect(drills.judge(subject, now: begin) == nil)
    }

    @Test func `is told in words without a token`() {
        let text = "\(drill(.refuse(.tooManyRequests, retryAfter: .seconds(30)), .slot(Self.slot), share: 0.125))"
        #expect(
            text == "refuse with 429 TooManyRequests and retry-after 30, for 12.5 % of the requests, one device token"
        )
        #expect("\(drill(.latency(.milliseconds(200) ... .seconds(2))))" == "answer after 200 to 2000 ms")
        let odd = Drill.Kind.refuseAs(status: 418, reason: "a \"tea\"\u{1b}", retryAfter: .seconds(3))
        #expect("\(drill(odd))" == #"refuse with 418 "a \"tea\"\u001b" and retry-after 3"#)
        #expect("\(drill(.refuseAs(status: 502, reason: nil, retryAfter: nil)))" == "refuse with 502 without a body")
        #expect("\(drill(.reset(isAccepted: true), first: 1))" == "accept and reset the stream, once")
        #expect("\(drill(.reset(isAccepted: false)))" == "lose and reset the stream")
        #expect("\(drill(.refuseStream))" == "refuse the stream")
        #expect("\(drill(.goAway(.shutdown, isTwoStep: true)))" == "GOAWAY in two steps with Shutdown")
    }
}

@Suite
struct `a payload's drill` {
    private func read(_ drill: String) throws(PayloadDrill.Mistake) -> DrillVerdict? {
        try PayloadDrill.read(Array(#"{"aps":{},"herald":{"drill":\#(drill)}}"#.utf8))
    }

    @Test func `is none where the payload has none`() throws {
        let deep = String(repeating: "[", count: 2500) + String(repeating: "]", count: 2500)
        for text in [
            #"{"aps":{}}"#, #"{"aps":{},"herald":{}}"#, #"{"herald":null}"#, #"{"a":"\"herald\""}"#,
            #"{"herald":{"tga":1,"build":{"drill":1}}}"#, "{\"a\":\(deep),\"herald\":{}}", "{\"a\":\(deep)}",
        ] {
            #expect(try PayloadDrill.read(Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test(arguments: [
        (#"{"her\u0061ld":{"dr\u0069ll":{"reason":"Unregistered"}}}"#, true),
        (#"{"herald":{},"herald":{"drill":{"reason":"Unregistered"}}}"#, true),
        (#"{"herald":{"drill":{"reason":"Unregistered"}},"herald":{}}"#, false),
        (#"{"herald":{"drill":null}}"#, false), (#"{"a":"\u0068"}"#, false),
    ])
    func `is the same where payloads may have drills and where not`(text: String, isAsked: Bool) throws {
        #expect(UnheededDrill.isIn(Array(text.utf8)) == isAsked)
        #expect((try PayloadDrill.read(Array(text.utf8)) != nil) == isAsked)
    }

    @Test(arguments: [
        #"{"herald":[{"drill":{"reason":"Unregistered"}}]}"#, #"{"herald":"drill"}"#,
        #"{"k":\#(String(repeating: "[", count: 600))\#(String(repeating: "]", count: 600)),"herald":{"drill":{}}}"#,
        #"{"herald":{"dril":{"reason":"Unregistered"}}}"#, #"{"herald":{"Drill":{"reason":"Unregistered"},"tag":"a"}}"#,
        #"{"herald":{"drill":{"reason":"Unregistered"},"drills":{}}}"#, #"{"herald":{"drill":null,"dirll":[]}}"#,
        #"{"herald":{"drill":{"reason":"TooManyRequests","retry-after":[[[1]]]}}}"#,
    ])
    func `that cannot be read is refused, or told to have no effect`(text: String) {
        #expect(UnheededDrill.isIn(Array(text.utf8)))
        #expect(throws: PayloadDrill.Mistake.self) { try PayloadDrill.read(Array(text.utf8)) }
    }

    @Test func `says what becomes of the request`() throws {
        #expect(try read(#"{"reason":"Unregistered"}"#)?.outcome == .refuse(.unregistered, retryAfter: nil))
        let late = try read(#"{"reason":"TooManyRequests","retry-after":30,"latency":0.5}"#)
        #expect(late?.outcome == .refuse(.tooManyRequests, retryAfter: .seconds(30)))
        #expect(late?.latency == .milliseconds(500))
        #expect(try read(#"{"latency":2}"#)?.outcome == nil)
        #expect(try read(#"{"silence":"lost"}"#)?.outcome == .silence(isAccepted: false))
        #expect(try read(#"{"silence":"accepted"}"#)?.outcome == .silence(isAccepted: true))
        #expect(try read(#"{"connection":"drop"}"#)?.outcome == .drop)
        #expect(try read(#"{"connection":"reset"}"#)?.outcome == .reset(isAccepted: false))
        #expect(try read(#"{"connection":"refuse-stream"}"#)?.outcome == .refuseStream)
        #expect(try read(#"{"connection":"goaway"}"#)?.outcome == .goAway(nil))
        #expect(try read(#"{"connection":"shutdown"}"#)?.outcome == .shutdown)
    }

    @Test(arguments: [
        "1e400", "18446744073709551616", "-0", "1.10", #""\ud83d""#, #"{"\#u{E9}":1,"e\#u{301}":2}"#, #"{"a":1,"a":2}"#,
    ])
    func `is read whatever stands beside it`(value: String) throws {
        let text =
            #"{"before":\#(value),"herald":{"drill":{"connection":"drop"},"tag":"x","n":\#(value)},"after":\#(value)}"#
        #expect(try PayloadDrill.read(Array(text.utf8))?.outcome == .drop)
        #expect(HeraldMember.tag(nil, Array(text.utf8)) == "x")
    }

    @Test(arguments: [
        (#"{"latency":1e400}"#, "a drill's latency is 0 to 600 seconds"),
        (#"{"latency":600.001}"#, "a drill's latency is 0 to 600 seconds"),
        (
            #"{"reason":"TooManyRequests","retry-after":1e400}"#,
            "a drill's retry-after is 1 to 86400 seconds, and goes with a reason"
        ),
        (
            #"{"reason":"TooManyRequests","retry-after":1.5}"#,
            "a drill's retry-after is 1 to 86400 seconds, and goes with a reason"
        ),
        (
            #"{"reason":"TooManyRequests","retry-after":18446744073709551615}"#,
            "a drill's retry-after is 1 to 86400 seconds, and goes with a reason"
        ),
    ])
    func `with a number out of its range names the range`(drill: String, words: String) {
        #expect(throws: PayloadDrill.Mistake(text: words)) { try read(drill) }
    }

    @Test(arguments: [
        "{}", "1", "[]", #"{"reason":"Nonsense"}"#, #"{"reasons":"Unregistered"}"#, #"{"latency":-1}"#,
        #"{"latency":1e300}"#, #"{"latency":"1s"}"#, #"{"retry-after":30}"#, #"{"silence":"yes"}"#,
        #"{"reason":"TooManyRequests","retry-after":0}"#, #"{"reason":"TooManyRequests","retry-after":9e18}"#,
        #"{"reason":"Unregistered","connection":"drop"}"#, #"{"connection":"x"}"#,
    ])
    func `that is not understood is a mistake`(drill: String) {
        #expect(throws: PayloadDrill.Mistake.self) { try read(drill) }
    }

    @Test func `a tag is cut at scalars, and an empty one is none`() {
        let long = String(repeating: "e\u{301}", count: 40)
        #expect(HeraldMember.tag(long, [])?.unicodeScalars.count == 64)
        #expect(HeraldMember.tag("", Array(#"{"herald":{"tag":"x"}}"#.utf8)) == nil)
        #expect(HeraldMember.tag(nil, Array(#"{"herald":{"tag":5}}"#.utf8)) == nil)
    }

    @Test func `that is misspelt is named`() {
        #expect(throws: PayloadDrill.Mistake(text: "herald.dril is not a known key: did you mean drill?")) {
            try PayloadDrill.read(Array(#"{"herald":{"dril":{"reason":"Unregistered"}}}"#.utf8))
        }
    }

    @Test func `is not found at any depth but its own, and what stands beside it may be as deep as a payload is long`()
        throws
    {
        let deep = String(repeating: "[", count: 2500) + String(repeating: "]", count: 2500)
        let payload = Array(#"{"a":\#(deep),"herald":{"drill":{"connection":"drop"},"tag":"x"},"b":\#(deep)}"#.utf8)
        #expect(try PayloadDrill.read(payload)?.outcome == .drop)
        #expect(HeraldMember.tag(nil, payload) == "x")
        #expect(try PayloadDrill.read(Array(#"{"a":{"herald":{"drill":{"reason":"Shutdown"}}}}"#.utf8)) == nil)
    }
}
