import HeraldMailbox
import HeraldModel
import NIOCore
import Testing

@testable import HeraldCluster

@Suite struct MailboxPartitionTests {
    private var partition = MailboxPartition()

    private func removal(_ sequence: UInt64) -> MailboxPartition.Removal {
        let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
        return MailboxPartition.Removal(slot: RegisteredSlot(slot, generation: 1), sequence: sequence)
    }

    @Test mutating func `removals that were not made wait for one retry together`() {
        for sequence in 1...3 { partition.remove(UInt64(sequence)) }
        let refused = AppendOutcome.refused(LogRefusal(code: 10077, text: "no space"))
        #expect(partition.removed(removal(1), .unknown) == true)
        #expect(partition.removed(removal(2), refused) == false, "a retry is awaited")
        #expect(partition.removed(removal(3), .moved(9)) == false)
        #expect(partition.retryRemovals() == [removal(1), removal(2)])
        #expect(partition.retryRemovals().isEmpty)
        #expect(partition.removed(removal(1), .stored(10)) == false)
        #expect(partition.removed(removal(2), .notSent) == true, "another retry")
    }

    @Test mutating func `a read contains what an earlier one has found`() {
        partition.saw(5)
        #expect(partition.beginRead([removal(9).slot.slot], of: [DeviceNumber(1)]) == 5)
        let subject = LogSubject.slot(removal(9).slot.slot, generation: 1, Partition(0))
        let entries = [LogEntry(subject: subject, sequence: 9, payload: ByteBuffer())]
        #expect(partition.endRead([DeviceNumber(1)], entries).count == 1)
        #expect(partition.beginRead([removal(9).slot.slot], of: [DeviceNumber(1)]) == 9)
    }

    @Test mutating func `the removals of a closed partition wait until it opens`() {
        partition.remove(1)
        #expect(partition.close() && !partition.close())
        #expect(partition.removed(removal(1), .notSent) == true)
        #expect(partition.retryRemovals().isEmpty)
        #expect(partition.reopen() == [removal(1)])
    }
}
