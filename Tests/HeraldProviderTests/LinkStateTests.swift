import NIOCore
import Testing

@testable import HeraldProvider

@Suite struct LinkStateTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    /// A connection on which the service's settings have come.
    private func open(_ change: (inout ProviderConnectionLimits) -> Void = { _ in }) -> LinkState {
        var limits = ProviderConnectionLimits()
        change(&limits)
        var state = LinkState(limits: limits, openingTime: .seconds(30), now: start)
        state.receivedSettings()
        state.read(now: start)
        return state
    }

    @Test func `takes nothing before the service's settings`() {
        var state = LinkState(limits: ProviderConnectionLimits(), openingTime: .seconds(30), now: start)
        #expect(state.room(streamLimit: 100, openStreams: 0) == 0)
        state.receivedSettings()
        #expect(state.room(streamLimit: 100, openStreams: 0) == 100)
    }

    @Test func `is closed when the settings never come`() {
        var state = LinkState(limits: ProviderConnectionLimits(), openingTime: .seconds(30), now: start)
        #expect(state.tick(now: start + .seconds(29), isBusy: false) == .nothing)
        #expect(state.tick(now: start + .seconds(30), isBusy: false) == .close)
    }

    @Test func `follows the service's stream limit, down to nothing and up to its own`() {
        let state = open { $0.streams = 500 }
        #expect(state.room(streamLimit: 1, openStreams: 0) == 1)
        #expect(state.room(streamLimit: 1, openStreams: 300) == 0)
        #expect(state.room(streamLimit: 0, openStreams: 0) == 0)
        #expect(state.room(streamLimit: Int(UInt32.max), openStreams: 100) == 400)
    }

    @Test func `is pinged when it is idle, and closed without an answer`() {
        var state = open()
        #expect(state.nextCheck(isBusy: false) == start + .seconds(60))
        #expect(state.tick(now: start + .seconds(59), isBusy: false) == .nothing)
        #expect(state.tick(now: start + .seconds(60), isBusy: false) == .ping)
        #expect(state.tick(now: start + .seconds(64), isBusy: false) == .nothing)
        #expect(state.tick(now: start + .seconds(65), isBusy: false) == .close)
    }

    @Test func `counts as alive with any byte`() {
        var state = open()
        #expect(state.tick(now: start + .seconds(60), isBusy: false) == .ping)
        state.read(now: start + .seconds(64))
        #expect(state.tick(now: start + .seconds(65), isBusy: false) == .nothing)
        #expect(state.tick(now: start + .seconds(124), isBusy: false) == .ping)
    }

    @Test func `is not closed because this process slept`() {
        var state = open()
        #expect(state.tick(now: start + .seconds(60), isBusy: false) == .ping)
        state.postponeTimers(by: .seconds(3600))
        #expect(state.tick(now: start + .seconds(3664), isBusy: false) == .nothing)
        #expect(state.tick(now: start + .seconds(3665), isBusy: false) == .close)
    }

    @Test func `is pinged sooner with requests in flight`() {
        var state = open()
        #expect(state.tick(now: start + .seconds(5), isBusy: true) == .ping)
        #expect(state.tick(now: start + .seconds(10), isBusy: true) == .close)
    }

    @Test func `is pinged before it is used after a long silence`() {
        var state = open()
        #expect(state.probeIfIdle(now: start + .seconds(29)) == .nothing)
        #expect(state.room(streamLimit: 9, openStreams: 0) == 9)
        #expect(state.probeIfIdle(now: start + .seconds(30)) == .ping)
        #expect(state.probeIfIdle(now: start + .seconds(31)) == .nothing)
        #expect(state.room(streamLimit: 9, openStreams: 0) == 0)
        state.read(now: start + .seconds(32))
        #expect(state.room(streamLimit: 9, openStreams: 0) == 9)
    }

    @Test func `is not used after a time-out until bytes arrive`() {
        var state = open()
        #expect(state.timedOut(now: start + .seconds(30)) == .ping)
        #expect(state.room(streamLimit: 9, openStreams: 0) == 0)
        state.read(now: start + .seconds(31))
        #expect(state.room(streamLimit: 9, openStreams: 0) == 9)
    }

    @Test func `drains after many time-outs in a row, though it answers pings`() {
        var state = open { $0.timeoutsInARow = 3 }
        for second in 1...2 {
            _ = state.timedOut(now: start + .seconds(Int64(second)))
            state.read(now: start + .seconds(Int64(second)))
        }
        state.answered()
        for second in 3...4 {
            _ = state.timedOut(now: start + .seconds(Int64(second)))
            state.read(now: start + .seconds(Int64(second)))
            #expect(state.phase == .open)
        }
        _ = state.timedOut(now: start + .seconds(5))
        #expect(state.phase == .draining)
    }

    @Test func `takes no request while it is draining`() {
        var state = open()
        state.drain()
        #expect(state.room(streamLimit: 9, openStreams: 0) == 0)
        #expect(state.probeIfIdle(now: start + .seconds(90)) == .nothing)
        state.receivedSettings()
        #expect(state.phase == .draining)
    }
}
