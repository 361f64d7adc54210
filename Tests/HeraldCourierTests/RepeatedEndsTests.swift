import HeraldModel
import HeraldWire
import Testing

@testable import HeraldCourier

@Suite struct RepeatedEndsTests {
    private static let device = DeviceNumber(7)
    private static let first = RepeatedEnds.Message.notification(NotificationID(high: 0, low: 1))
    private static let second = RepeatedEnds.Message.notification(NotificationID(high: 0, low: 2))
    private static let cast = RepeatedEnds.Message.broadcast(ChannelID(high: 1, low: 1), number: 9)
    private static let prompt = RepeatedEnds.Cause.closed(after: .milliseconds(3))

    /// One device whose connections end.
    private final class Scene {
        var ends = RepeatedEnds()

        var isSuspected: Bool { ends.isSuspected(RepeatedEndsTests.device) }

        /// Ends a connection.
        /// - Returns: Whether the message is withheld.
        func end(
            _ cause: RepeatedEnds.Cause,
            _ messages: [RepeatedEnds.Message],
            wasCleared: Bool = false
        ) -> Bool {
            ends.ended(RepeatedEndsTests.device, cause, unacknowledged: messages, wasCleared: wasCleared)
        }

        /// The number of the connection at whose end the message is withheld; nil if that never happens.
        func withheld(after causes: [RepeatedEnds.Cause], _ message: RepeatedEnds.Message = first) -> Int? {
            causes.firstIndex { end($0, [message]) }.map { $0 + 1 }
        }

        /// The same, for ends that the peer closes at once.
        func withheld(within count: Int, _ message: RepeatedEnds.Message = first) -> Int? {
            withheld(after: Array(repeating: prompt, count: count), message)
        }
    }

    private let scene = Scene()

    @Test func `five connections that the peer closes at the same message`() {
        #expect(scene.withheld(within: 9) == 5)
        #expect(!scene.isSuspected)
    }

    @Test func `two connections whose DISCONNECT names a packet`() {
        #expect(scene.withheld(after: [.named, .named, .named]) == 2)
        #expect(scene.withheld(after: [Self.prompt, Self.prompt, .named], Self.second) == 3)
    }

    @Test(arguments: [
        [RepeatedEnds.Cause.other], [.closed(after: .seconds(3))], [.closed(after: .seconds(-1))],
        // A network that fails at once now and then, and else later.
        [prompt, prompt, prompt, prompt, .closed(after: .seconds(30))], [.named, prompt, .other],
    ])
    func `a device on a bad network keeps its notification`(causes: [RepeatedEnds.Cause]) {
        for _ in 0..<9 { #expect(scene.withheld(after: causes) == nil) }
        #expect(!scene.isSuspected)
    }

    @Test func `of several messages none is withheld, and the device gets one at a time`() {
        for _ in 0..<20 {
            #expect(!scene.end(Self.prompt, [Self.first, Self.second]))
            #expect(scene.isSuspected)
        }
        #expect(scene.withheld(within: 9) == 5)
    }

    @Test func `an end with several messages keeps the count of the suspected one`() {
        #expect(scene.withheld(within: 4) == nil)
        #expect(!scene.end(Self.prompt, [Self.first, Self.second]))
        #expect(scene.withheld(within: 1) == 1)
    }

    @Test func `another message begins its own count`() {
        #expect(scene.withheld(within: 4) == nil)
        #expect(scene.withheld(within: 9, Self.second) == 5)
        #expect(scene.withheld(within: 9) == 5)
    }

    @Test func `a device that acknowledged what waited is suspected no more`() {
        #expect(scene.withheld(within: 4) == nil)
        #expect(!scene.end(Self.prompt, [], wasCleared: true))
        #expect(!scene.isSuspected)
        #expect(scene.withheld(within: 1) == nil)
    }

    @Test func `a connection that ended before the message came says nothing`() {
        for _ in 0..<4 {
            #expect(scene.withheld(within: 1) == nil)
            #expect(!scene.end(Self.prompt, []) && !scene.end(.other, []))
        }
        #expect(scene.withheld(within: 1) == 1)
    }

    @Test func `a device token is never withheld`() {
        for _ in 0..<20 { #expect(!scene.end(.named, [.token])) }
        #expect(scene.isSuspected)
    }

    @Test func `a withheld broadcast is remembered for sessions that begin anew`() {
        #expect(scene.withheld(within: 9, Self.cast) == 5)
        #expect(scene.ends.withheldBroadcasts(of: Self.device) == [ChannelID(high: 1, low: 1): 9])
        #expect(scene.ends.withheldBroadcasts(of: DeviceNumber(8)).isEmpty && !scene.isSuspected)
    }

    @Test func `memory is bounded, and the devices of the last ends are kept`() {
        var ends = RepeatedEnds(capacity: 10)
        for number in 1...100 {
            _ = ends.ended(DeviceNumber(UInt64(number)), Self.prompt, unacknowledged: [Self.first])
        }
        let known = (1...100).filter { ends.isSuspected(DeviceNumber(UInt64($0))) }
        #expect(known.count <= 20 && known.suffix(10) == Array(91...100)[...])
    }

    @Test(arguments: [
        (PeerEnd.closed, prompt), (.timeout, .other), (.disconnect(.success), .other),
        (.disconnect(.malformedPacket), .named),
        (.disconnect(.protocolError), .named), (.disconnect(.payloadFormatInvalid), .named),
        (.disconnect(.unspecifiedError), prompt), (.disconnect(.disconnectWithWillMessage), .other),
        (.disconnect(.messageRateTooHigh), .other), (.disconnect(.quotaExceeded), .other),
        (.disconnect(.administrativeAction), .other),
    ])
    func `the peer's end has a cause`(end: PeerEnd, cause: RepeatedEnds.Cause) {
        #expect(RepeatedEnds.Cause(end, after: .milliseconds(3)) == cause)
    }
}
