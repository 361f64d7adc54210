import HeraldMailbox
import HeraldModel
import NIOCore
import Testing

@testable import HeraldCluster

/// The rings that are not over, and the rule by which they end.
@Suite struct RingBookTests {
    private let own: NodeName
    private let holder: NodeName
    private let other: NodeName
    private var book: RingBook
    private var now = NIODeadline.uptimeNanoseconds(1)

    init() throws {
        own = try #require(NodeName("own"))
        holder = try #require(NodeName("holder"))
        other = try #require(NodeName("other"))
        book = RingBook(node: own)
    }

    private func passed(_ sequence: UInt64, to device: UInt64) -> PassedNotification {
        let notification = Notification(
            id: NotificationID(high: 1, low: sequence),
            uniqueID: NotificationID(high: 2, low: sequence),
            slot: Slot(device: DeviceNumber(device), app: AppNumber(1)),
            received: WallTime(seconds: 1_800_000_000),
            storedUntil: nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        return PassedNotification(Envelope(notification, generation: 1), sequence: sequence)
    }

    /// The receivers of the rings that are sent when a notification has been stored.
    private mutating func store(_ sequence: UInt64, to device: UInt64 = 1, hint: NodeName?) -> [NodeName?] {
        book.stored(passed(sequence, to: device), hint: hint, at: now).map { [$0.receiver] } ?? []
    }

    /// Whether a ring is over with this answer.
    private mutating func answer(_ sequence: UInt64, by node: NodeName) -> Bool {
        book.answered(sequence, by: node, at: now)
    }

    private mutating func pass(_ time: Duration) -> RingBook.Decision {
        now = now + TimeAmount(time)
        return book.overdue(at: now)
    }

    @Test mutating func `a ring ends when its holder has answered and the claims are known, in either order`() {
        #expect(store(5, hint: holder) == [holder])
        #expect(store(6, hint: holder) == [holder])
        #expect(answer(5, by: holder) == false)
        let settled = book.settle(upTo: 9) { [holder] _, _ in holder }
        #expect(settled.answered == [5] && settled.orders.isEmpty)
        #expect(answer(6, by: holder) == true)
        #expect(book.isEmpty)
    }

    @Test mutating func `an answer of a node that is not the holder ends nothing`() {
        _ = store(5, hint: holder)
        let settled = book.settle(upTo: 5) { [other] _, _ in other }
        #expect(settled.orders.map(\.receiver) == [other] && settled.answered.isEmpty)
        #expect(answer(5, by: holder) == false)
        #expect(answer(5, by: other) == true)
    }

    @Test mutating func `what a node has answered to a repetition counts when it turns out to be the holder`() {
        _ = store(5, hint: holder)
        #expect(answer(5, by: other) == false)
        let settled = book.settle(upTo: 5) { [other] _, _ in other }
        #expect(settled.orders.isEmpty && settled.answered == [5])
    }

    @Test mutating func `claims are settled in the order of the log, whatever the order of the reports`() {
        for sequence in [7, 3, 5] as [UInt64] { _ = store(sequence, to: sequence, hint: nil) }
        #expect(book.settle(upTo: 4) { _, _ in nil }.answered == [3])
        #expect(book.settle(upTo: 8) { _, _ in nil }.answered == [5, 7])
        #expect(book.isEmpty)
    }

    @Test mutating func `a claim that comes late names the holder of what is not settled, of its device alone`() {
        _ = store(5, to: 1, hint: holder)
        _ = store(7, to: 1, hint: holder)
        _ = store(6, to: 2, hint: holder)
        // A claim with the sequence 6.
        let other = other
        let orders = book.claimed(DeviceNumber(1)) { $0 > 6 ? other : nil }
        #expect(orders.map(\.notification.sequence) == [7] && orders.map(\.receiver) == [other])
        _ = book.settle(upTo: 9) { [holder] _, _ in holder }
        let late = book.claimed(DeviceNumber(1)) { _ in other }
        #expect(late.isEmpty)
    }

    @Test mutating func `one that is answered asks for the claims, and is repeated only if they do not come`() {
        _ = store(5, hint: holder)
        _ = answer(5, by: holder)
        #expect(pass(.milliseconds(400)).wantsClaims == false)
        let first = pass(.milliseconds(100))
        #expect(first.wantsClaims && first.orders.isEmpty)
        #expect(pass(.seconds(1)).orders.map(\.receiver) == [nil])
    }

    @Test
    mutating func `one that nobody answers goes to all until its node must have dismissed the device, and is given up`()
    {
        _ = store(5, hint: holder)
        #expect(pass(.milliseconds(400)).orders.isEmpty)
        for pause in [.milliseconds(100), .seconds(1), .seconds(5), .seconds(5), .seconds(10)] as [Duration] {
            let decision = pass(pause)
            #expect(decision.orders.map(\.receiver) == [nil] && decision.givenUp.isEmpty)
        }
        let last = pass(.seconds(1))
        #expect(last.orders.isEmpty && last.givenUp == [5] && book.isEmpty)
        // A claim, and the position of the log, find nothing of it.
        let orders = book.claimed(DeviceNumber(1)) { [other] _ in other }
        let settled = book.settle(upTo: 9) { _, _ in nil }
        #expect(orders.isEmpty && settled.answered.isEmpty)
    }

    @Test mutating func `one whose holder still answers earlier ones is not repeated`() {
        for sequence in 5...8 as ClosedRange<UInt64> { _ = store(sequence, hint: holder) }
        _ = book.settle(upTo: 8) { [holder] _, _ in holder }
        for sequence in 5...7 as ClosedRange<UInt64> {
            _ = pass(.milliseconds(400))
            _ = answer(sequence, by: holder)
        }
        #expect(pass(.milliseconds(100)).orders.isEmpty)
        // Silence for as long as the first pause.
        _ = pass(.milliseconds(399))
        #expect(pass(.milliseconds(101)).orders.map(\.notification.sequence) == [8])
    }

    @Test mutating func `one is repeated in time if its holder has answered a later one`() {
        for sequence in 5...7 as ClosedRange<UInt64> { _ = store(sequence, hint: holder) }
        _ = book.settle(upTo: 7) { [holder] _, _ in holder }
        _ = pass(.milliseconds(400))
        _ = answer(6, by: holder)
        #expect(pass(.milliseconds(100)).orders.map(\.notification.sequence) == [5])
    }

    @Test mutating func `one that went to another node by a late claim waits for what it sent there before`() {
        _ = store(5, to: 1, hint: holder)
        _ = store(6, to: 2, hint: other)
        let orders = book.claimed(DeviceNumber(1)) { [other] _ in other }
        #expect(orders.map(\.receiver) == [other])
        _ = book.settle(upTo: 6) { [other] _, _ in other }
        _ = pass(.milliseconds(400))
        _ = answer(6, by: other)
        #expect(pass(.milliseconds(100)).orders.isEmpty)
        #expect(answer(5, by: other) == true)
    }

    @Test mutating func `one that was lost is repeated in time, although a repetition has just been answered`() {
        _ = store(5, hint: holder)
        _ = pass(.milliseconds(400))
        _ = store(6, hint: holder)
        _ = book.settle(upTo: 6) { [holder] _, _ in holder }
        #expect(pass(.milliseconds(100)).orders.map(\.notification.sequence) == [5])
        _ = pass(.milliseconds(50))
        #expect(answer(5, by: holder) == true)
        #expect(pass(.milliseconds(350)).orders.map(\.notification.sequence) == [6])
    }

    @Test mutating func `another node's answers say nothing about the holder`() {
        _ = store(5, hint: holder)
        _ = store(6, hint: other)
        _ = pass(.milliseconds(400))
        _ = answer(6, by: other)
        #expect(pass(.milliseconds(100)).orders.map(\.notification.sequence) == [5])
    }

    @Test mutating func `beyond the limit a ring is sent once`() {
        for sequence in 1...UInt64(ClusterLimits.ringsWaiting) { _ = store(sequence, to: sequence, hint: nil) }
        let last = UInt64(ClusterLimits.ringsWaiting) + 1
        #expect(store(last, hint: holder) == [holder])
        #expect(answer(last, by: holder) == false)
        let settled = book.settle(upTo: last) { _, _ in nil }
        #expect(settled.answered.count == ClusterLimits.ringsWaiting && book.isEmpty)
    }
}
