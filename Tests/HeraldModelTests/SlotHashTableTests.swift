import Testing

@testable import HeraldModel

struct SlotHashTableTests {
    private struct Element: SlotHolder {
        let slot: Slot
    }

    @Test func `random additions and removals give the same as a dictionary`() {
        var elements: [Element] = []
        var table = SlotHashTable()
        var plain: [Slot: Int32] = [:]
        for _ in 0..<50_000 {
            // Few enough to meet, and with places that run over the end of the table.
            let device = DeviceNumber(.random(in: 0...300) &* .random(in: 1...3))
            let slot = Slot(device: device, app: AppNumber(.random(in: 0...2)))
            #expect(table.find(slot, in: elements) == plain[slot])
            if plain.removeValue(forKey: slot) == nil {
                elements.append(Element(slot: slot))
                plain[slot] = Int32(elements.count - 1)
                table.add(Int32(elements.count - 1), in: elements)
            } else {
                table.remove(slot, in: elements)
            }
        }
        #expect(table.count == plain.count)
        for (slot, index) in plain { #expect(table.find(slot, in: elements) == index) }
    }
}
