import Testing

@testable import HeraldModel

struct SlotHashTableTests {
    private struct Element: SlotHolder {
        let slot: Slot
    }

    /// SplitMix64: the same history each time.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `random additions and removals give the same as a dictionary`(seed: UInt64) {
        var random = Generator(state: seed)
        var elements: [Element] = []
        var free: [Int32] = []
        var table = SlotHashTable()
        var plain: [Slot: Int32] = [:]
        for step in 0..<12_000 {
            // Few enough to meet, and with places that run over the end of the table.
            let number = UInt64.random(in: 0...300, using: &random) * .random(in: 1...3, using: &random)
            let slot = Slot(device: DeviceNumber(number), app: AppNumber(.random(in: 0...2, using: &random)))
            #expect(table.find(slot, in: elements) == plain[slot])
            if let index = plain.removeValue(forKey: slot) {
                table.remove(slot, in: elements)
                free.append(index)
            } else {
                let index = free.popLast() ?? Int32(elements.count)
                if Int(index) < elements.count {
                    elements[Int(index)] = Element(slot: slot)
                } else {
                    elements.append(Element(slot: slot))
                }
                plain[slot] = index
                table.add(index, in: elements)
            }
            if step % 4_000 == 3_999 { table.reserve(table.count * 2, in: elements) }
        }
        #expect(table.count == plain.count)
        for (slot, index) in plain { #expect(table.find(slot, in: elements) == index) }
    }

    @Test func `a filled table has the same entries after room was made for many more`() {
        let elements = (0..<100).map { Element(slot: Slot(device: DeviceNumber($0 * 7), app: AppNumber(1))) }
        var table = SlotHashTable()
        for index in 0..<50 { table.add(Int32(index), in: elements) }
        table.reserve(10_000, in: elements)
        for index in 50..<100 { table.add(Int32(index), in: elements) }
        #expect(table.count == 100)
        for (index, element) in elements.enumerated() {
            #expect(table.find(element.slot, in: elements) == Int32(index))
        }
    }
}
