import HeraldCluster
import HeraldModel
import Testing

@Suite struct LogSubjectTests {
    @Test func `a slot is read from its subject`() throws {
        let partitions = try #require(Partitions(count: 4))
        for number in [0, 1, 4_096, 0xF0F0_F0F0_F0F0_F0F0, UInt64.max] {
            let slot = Slot(device: DeviceNumber(number), app: AppNumber(71))
            let partition = partitions.partition(of: slot.device)
            let subject = LogSubject.slot(slot, generation: 40, partition)
            #expect(subject.slot?.slot == slot)
            #expect(subject.slot?.generation == 40)
            #expect(LogSubject.claim(slot.device, partition).claimedDevice == slot.device)
        }
        for app in [0, 9, 10, 35, 36, UInt32.max] {
            let slot = Slot(device: DeviceNumber(7), app: AppNumber(app))
            let subject = LogSubject.slot(slot, generation: app, Partition(63))
            #expect(subject.slot?.slot == slot && subject.slot?.generation == app)
        }
        let one = LogSubject.slot(Slot(device: DeviceNumber(1), app: AppNumber(71)), generation: 40, Partition(12))
        #expect(one.text == "hrld.box.12.AAAAAAAAAAE.n.1z.14")
        #expect(LogSubject("hrld.box.0.AAAAAAAAAAF.n.1z.14").slot?.slot == nil)
        #expect(LogSubject("hrld.box.0.AAAAAAAAAAE.c").slot == nil)
        #expect(LogSubject("hrld.box.0.barrier.node.c").claimedDevice == nil)
    }

    @Test func `devices are spread over the partitions`() throws {
        let partitions = try #require(Partitions(count: 4))
        let devices = (1...4_000).map { DeviceNumber($0) }
        let counts = Dictionary(grouping: devices, by: partitions.partition(of:)).mapValues(\.count)
        #expect(counts.count == 4 && counts.values.allSatisfy { (800...1_200).contains($0) })
        #expect(Partitions(count: 0) == nil)
    }

    @Test func `a node name is one part of a subject`() {
        #expect(NodeName("node-1_b") != nil)
        for name in ["", "a.b", "a b", "*", ">", String(repeating: "a", count: 65)] { #expect(NodeName(name) == nil) }
    }
}
