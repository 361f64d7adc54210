package import HeraldModel

/// The cluster itself: what was decided when it was created, and never changes.
package struct ClusterRecord: LogRecord, Hashable {
    package static let kind: StaticString = "cluster"

    /// 1 to 2²⁴ - 1, random: a part of all device numbers, so that those of a lost cluster never come again.
    package let incarnation: UInt32
    package let partitions: Partitions
    package let created: WallTime

    package init(incarnation: UInt32, partitions: Partitions, created: WallTime) {
        self.incarnation = incarnation
        self.partitions = partitions
        self.created = created
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let number: UInt32 = try fields.integer()
        incarnation = try fields.valid((1..<1 << 24).contains(number) ? number : nil)
        partitions = try fields.valid(Partitions(count: Int(fields.integer(UInt8.self))))
        created = try fields.time()
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(incarnation)
        fields.integer(UInt8(clamping: partitions.count))
        fields.time(created)
    }
}

/// A counter that nodes raise by compare-and-set.
package struct CounterRecord: LogRecord, Hashable {
    package static let kind: StaticString = "counter"

    /// The first number that was not handed out.
    package var next: UInt64

    package init(next: UInt64) {
        self.next = next
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        next = try fields.integer()
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(next)
    }
}
