import Foundation
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import HeraldListener

private final class Holder: DeadlineHolder {
    var deadline: NIODeadline?
    var next: NIODeadline?
    var whenFired: (() -> Void)?
    private(set) var fired = 0

    init(_ deadline: NIODeadline?) {
        self.deadline = deadline
    }

    func deadlinePassed() {
        fired += 1
        deadline = next
        whenFired?()
    }
}

@Suite struct DeadlineWheelTests {
    private let loop = EmbeddedEventLoop()

    private func wheel(buckets: Int = 8) -> DeadlineWheel {
        DeadlineWheel(eventLoop: loop, tick: .milliseconds(100), bucketCount: buckets)
    }

    @Test func `a deadline fires once, never early, and at most one tick late`() {
        let wheel = wheel()
        let holder = Holder(loop.now + .milliseconds(250))
        wheel.add(holder)
        loop.advanceTime(by: .milliseconds(249))
        #expect(holder.fired == 0)
        loop.advanceTime(by: .milliseconds(101))
        #expect(holder.fired == 1)
        loop.advanceTime(by: .seconds(10))
        #expect(holder.fired == 1)
    }

    @Test func `a deadline that was moved later fires at the later moment only`() {
        let wheel = wheel()
        let holder = Holder(loop.now + .milliseconds(200))
        wheel.add(holder)
        loop.advanceTime(by: .milliseconds(150))
        holder.deadline = loop.now + .milliseconds(500)
        loop.advanceTime(by: .milliseconds(400))
        #expect(holder.fired == 0)
        loop.advanceTime(by: .milliseconds(200))
        #expect(holder.fired == 1)
    }

    @Test func `a deadline beyond one round of the wheel is kept`() {
        let wheel = wheel(buckets: 4)
        let holder = Holder(loop.now + .seconds(5))
        wheel.add(holder)
        loop.advanceTime(by: .milliseconds(4950))
        #expect(holder.fired == 0)
        loop.advanceTime(by: .milliseconds(200))
        #expect(holder.fired == 1)
    }

    @Test func `a holder without a deadline is dropped, and the wheel stands still when it is empty`() {
        let wheel = wheel()
        let holder = Holder(loop.now + .milliseconds(200))
        wheel.add(holder)
        holder.deadline = nil
        loop.advanceTime(by: .seconds(5))
        #expect(holder.fired == 0)
        holder.deadline = loop.now + .milliseconds(300)
        wheel.add(holder)
        loop.advanceTime(by: .milliseconds(400))
        #expect(holder.fired == 1)
    }

    @Test func `a holder that cancels is released at once, and fires no more`() {
        let wheel = wheel()
        var holder: Holder? = Holder(loop.now + .milliseconds(200))
        weak let watched = holder
        let registration = holder.map { wheel.add($0) }
        #expect(watched != nil)
        registration?.cancel()
        holder = nil
        #expect(watched == nil)
        loop.advanceTime(by: .seconds(5))
    }

    @Test func `a holder that cancels when it fires is not watched any more`() {
        let wheel = wheel()
        let holder = Holder(loop.now + .milliseconds(200))
        holder.next = loop.now + .milliseconds(500)
        let registration = wheel.add(holder)
        holder.whenFired = { registration.cancel() }
        loop.advanceTime(by: .seconds(5))
        #expect(holder.fired == 1)
    }

    @Test func `a holder that sets a new deadline when it fires goes on`() {
        let wheel = wheel()
        let holder = Holder(loop.now + .milliseconds(100))
        holder.next = loop.now + .milliseconds(700)
        wheel.add(holder)
        loop.advanceTime(by: .milliseconds(300))
        #expect(holder.fired == 1)
        holder.next = nil
        loop.advanceTime(by: .milliseconds(600))
        #expect(holder.fired == 2)
    }

    @Test func `a thousand holders fire each at its time`() {
        let wheel = wheel()
        let start = loop.now
        let holders = (0..<1000).map { Holder(start + .milliseconds(Int64($0) * 3)) }
        for holder in holders { wheel.add(holder) }
        loop.advanceTime(by: .milliseconds(1500))
        #expect(holders[..<460].allSatisfy { $0.fired == 1 })
        #expect(holders[501...].allSatisfy { $0.fired == 0 })
        loop.advanceTime(by: .seconds(2))
        #expect(holders.allSatisfy { $0.fired == 1 })
    }

    @Test func `a loop that stood still reads what waits before a deadline fires`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (input, output) = (ends[0], ends[1])
        let isInTime = try await loop.flatSubmit { () -> EventLoopFuture<Bool> in
            let answer = loop.makePromise(of: Bool.self)
            let peer = Peer(answer)
            let bound = NIOLoopBound(peer, eventLoop: loop)
            return NIOPipeBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(bound.value)
                    }
                }
                .takingOwnershipOfDescriptor(input: input)
                .flatMap { channel in
                    let wheel = DeadlineWheel(eventLoop: loop, tick: .milliseconds(1))
                    bound.value.deadline = .now() + .milliseconds(2)
                    wheel.add(bound.value)
                    // The peer's byte comes in time; the loop stands still until long after the deadline.
                    _ = write(output, "x", 1)
                    let end = NIODeadline.now() + .milliseconds(50)
                    while .now() < end {}
                    return answer.futureResult.always { _ in
                        channel.close(promise: nil)
                        close(output)
                    }
                }
        }.get()
        #expect(isInTime)
    }
}

/// A connection that is in time if its first byte is read before its deadline passes.
private final class Peer: DeadlineHolder, ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    var deadline: NIODeadline?
    private let isInTime: EventLoopPromise<Bool>

    init(_ isInTime: EventLoopPromise<Bool>) { self.isInTime = isInTime }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        deadline = nil
        isInTime.succeed(true)
    }

    func deadlinePassed() {
        isInTime.succeed(false)
    }
}
