import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

/// An index that expectations can change.
private final class Box {
    private var index = SlotIndex()

    var count: Int { index.count }
    func entry(_ slot: Slot) -> SlotIndex.Entry? { index.entry(slot) }
    @discardableResult
    func set(_ entry: SlotIndex.Entry) -> SlotIndex.Entry? { index.set(entry) }
    func stored(_ slot: Slot) -> SlotIndex.Entry? { index.stored(slot) }
    func remove(_ slot: Slot, sequence: UInt64) -> Bool { index.remove(slot, sequence: sequence) }
    func move(_ slot: Slot, sequence: UInt64, to position: SegmentPosition) {
        index.move(slot, sequence: sequence, to: position)
    }
    func forget(_ slot: Slot, sequence: UInt64) { index.forget(slot, sequence: sequence) }
    var newestSequence: UInt64? { index.newestSequence }
    func expired(at moment: Int64, limit: Int = .max) -> [SlotIndex.Entry] {
        index.expired(at: WallTime(milliseconds: moment), limit: limit)
    }
}

struct SlotIndexTests {
    private func entry(_ device: UInt64, _ sequence: UInt64, expires: Int64 = .max) -> SlotIndex.Entry {
        SlotIndex.Entry(
            slot: Slot(device: DeviceNumber(device), app: AppNumber(1)),
            traits: .none,
            sequence: sequence,
            position: SegmentPosition(segment: Int64(sequence), index: 0, count: 1),
            expires: expires,
            id: NotificationID(high: device, low: sequence),
            uniqueID: NotificationID(high: sequence, low: device)
        )
    }

    private func sequences(_ entries: [SlotIndex.Entry]) -> [UInt64] { entries.map(\.sequence).sorted() }

    @Test func `a slot has the notification that was set last`() {
        let index = Box()
        #expect(index.set(entry(1, 1)) == nil)
        #expect(index.set(entry(1, 2)) == entry(1, 1))
        #expect(index.entry(entry(1, 0).slot) == entry(1, 2))
        #expect(index.entry(entry(2, 0).slot) == nil)
        #expect(index.count == 1)
    }

    @Test func `only the named sequence is removed`() {
        let index = Box()
        index.set(entry(1, 2))
        #expect(index.remove(entry(1, 0).slot, sequence: 1) == false)
        #expect(index.remove(entry(1, 0).slot, sequence: 2) == true)
        #expect(index.remove(entry(1, 0).slot, sequence: 2) == false)
        #expect(index.count == 0)
    }

    @Test func `a removed entry is returned only by stored, until it is forgotten`() {
        let index = Box()
        let slot = entry(1, 0).slot
        index.set(entry(1, 2, expires: 1000))
        index.set(entry(2, 3, expires: 1000))
        #expect(index.remove(slot, sequence: 2))
        #expect(index.entry(slot) == nil && index.count == 1)
        #expect(index.expired(at: 5000).map(\.sequence) == [3])
        #expect(index.stored(slot)?.sequence == 2)
        #expect(index.stored(slot)?.isRemoved == true)
        index.forget(slot, sequence: 1)
        #expect(index.stored(slot) != nil)
        index.forget(slot, sequence: 2)
        #expect(index.stored(slot) == nil && index.count == 1)
        #expect(index.set(entry(1, 4, expires: 1000)) == nil)
        #expect(index.expired(at: 5000).map(\.sequence).sorted() == [3, 4])
    }

    @Test func `a put after a removal sets the slot`() {
        let index = Box()
        let slot = entry(1, 0).slot
        index.set(entry(1, 2))
        #expect(index.remove(slot, sequence: 2))
        index.set(entry(1, 3))
        #expect(index.entry(slot) == entry(1, 3) && index.count == 1)
        index.forget(slot, sequence: 2)
        #expect(index.entry(slot) == entry(1, 3) && index.newestSequence == 3)
    }

    @Test func `a moved entry has its new position, removed or not`() {
        let index = Box()
        let slot = entry(1, 0).slot
        let position = SegmentPosition(segment: 99, index: 7, count: 9)
        index.set(entry(1, 2))
        index.move(slot, sequence: 1, to: position)
        #expect(index.entry(slot) == entry(1, 2))
        index.move(slot, sequence: 2, to: position)
        #expect(index.entry(slot)?.position == position)
        #expect(index.remove(slot, sequence: 2))
        index.move(slot, sequence: 2, to: SegmentPosition(segment: 100, index: 0, count: 1))
        #expect(index.stored(slot)?.position.segment == 100)
    }

    @Test func `expiry is exact to the millisecond`() {
        let index = Box()
        for (device, expires) in [(1, 1000), (2, 1500), (3, 1999), (4, 2000), (5, -1)] as [(UInt64, Int64)] {
            index.set(entry(device, device, expires: expires))
        }
        index.set(entry(6, 6))
        #expect(sequences(index.expired(at: -2, limit: 10)) == [])
        #expect(sequences(index.expired(at: -1, limit: 10)) == [5])
        #expect(sequences(index.expired(at: 1500, limit: 10)) == [1, 2, 5])
        #expect(sequences(index.expired(at: .max, limit: 10)) == [1, 2, 3, 4, 5])
        #expect(index.expired(at: .max, limit: 2).count == 2)
        #expect(index.expired(at: .max, limit: 0) == [])
    }

    @Test func `after a long pause expired entries are found without walking through every second`() {
        let index = Box()
        index.set(entry(1, 1, expires: 0))
        index.set(entry(2, 2, expires: 1_000_000_000_000_000))
        index.set(entry(3, 3, expires: 2_000_000_000_000_000))
        let moment: Int64 = 1_500_000_000_000_000
        #expect(index.expired(at: moment, limit: 1).map(\.sequence) == [1])
        #expect(index.expired(at: moment, limit: 9).map(\.sequence) == [1, 2])
    }

    @Test func `a hundred thousand random changes give the same as a dictionary`() {
        let index = Box()
        var plain: [Slot: SlotIndex.Entry] = [:]
        for sequence in 1...100_000 as ClosedRange<UInt64> {
            let new = entry(.random(in: 1...500), sequence, expires: .random(in: 0...100_000))
            switch UInt8.random(in: 0...3) {
            case 0:
                let held = plain[new.slot]
                #expect(index.remove(new.slot, sequence: held?.sequence ?? 0) == (held != nil))
                if Bool.random(), let held { index.forget(new.slot, sequence: held.sequence) }
                plain[new.slot] = nil
            case 1 where sequence % 100 == 0:
                let moment = Int64.random(in: 0...100_000)
                let expired = index.expired(at: moment)
                #expect(sequences(expired) == sequences(plain.values.filter { $0.expires <= moment }))
                for one in expired.prefix(20) {
                    #expect(index.remove(one.slot, sequence: one.sequence))
                    index.forget(one.slot, sequence: one.sequence)
                    plain[one.slot] = nil
                }
            default:
                let held = plain.updateValue(new, forKey: new.slot)
                let old = index.set(new)
                #expect(old?.isRemoved == true ? held == nil : old == held)
            }
        }
        #expect(index.count == plain.count)
        for (slot, held) in plain { #expect(index.entry(slot) == held) }
    }
}
