import HeraldModel
import Testing

@testable import HeraldMailbox

struct BroadcastQueueTests {
    private func broadcast(_ number: UInt64, to channel: UInt64) -> Broadcast {
        Broadcast(
            channel: ChannelID(high: 1, low: channel),
            app: AppNumber(1),
            number: number,
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            received: WallTime(milliseconds: 0),
            storedUntil: nil,
            priority: .immediate,
            payload: []
        )
    }

    @Test func `providers are refused at the limit, and other nodes' broadcasts go on to twice of it`() {
        var queue = BroadcastQueue(limit: 2)
        for number: UInt64 in 1...4 {
            #expect(queue.hasRoom == (number <= 2))
            #expect(queue.add(broadcast(number, to: number)) == .send)
        }
        #expect(queue.add(broadcast(5, to: 1)) == .wait(dropping: nil))
        #expect(queue.underWay == 4)
        #expect(queue.finished()?.number == 5)
        for _ in 1...4 { #expect(queue.finished() == nil) }
        #expect(queue.underWay == 0 && queue.hasRoom)
    }

    @Test func `of each channel the newest waits, and the channels come in the order in which they began`() {
        var queue = BroadcastQueue(limit: 1)
        for number: UInt64 in 1...2 { #expect(queue.add(broadcast(number, to: 9)) == .send) }
        #expect(queue.add(broadcast(3, to: 1)) == .wait(dropping: nil))
        #expect(queue.add(broadcast(4, to: 2)) == .wait(dropping: nil))
        #expect(queue.add(broadcast(5, to: 1)) == .wait(dropping: broadcast(3, to: 1)))
        #expect(queue.finished()?.number == 5)
        #expect(queue.add(broadcast(6, to: 2)) == .wait(dropping: broadcast(4, to: 2)))
        #expect(queue.finished()?.number == 6)
        #expect(queue.finished() == nil && queue.underWay == 1)
    }

    @Test func `a long burst keeps the order of every channel, and holds one broadcast of each`() {
        var queue = BroadcastQueue(limit: 1)
        var sent: [UInt64] = []
        for number: UInt64 in 1...5000 {
            if queue.add(broadcast(number, to: number % 3000)) == .send { sent.append(number) }
        }
        while let next = queue.finished() { sent.append(next.number) }
        // The first two went at once; of 3,000 channels, one broadcast each was left.
        #expect(sent.count == 2 + 3000)
        #expect(Set(sent.suffix(3000)) == Set(2001...5000))
        for channel: UInt64 in 0..<3000 {
            let ofChannel = sent.filter { $0 % 3000 == channel }
            #expect(ofChannel == ofChannel.sorted())
        }
    }
}
