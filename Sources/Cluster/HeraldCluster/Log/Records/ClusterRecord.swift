package import HeraldModel

/// The cluster itself: what was decided when it was created, and never changes.
package struct ClusterRecord: LogRecord, Hashable {
    package static let kind: StaticString = "cluster"
    private static let sourceBytes = 16

    /// 1 to 2²⁴ - 1, random: a part of all device numbers, so that those of a lost cluster never come again.
    package let incarnation: UInt32
    package let partitions: Partitions
    package let created: WallTime
    /// The folder of an import that has not ended: the first 16 bytes of the SHA-256 of its root authority.
    ///
    /// No node starts meanwhile. Nil for a whole cluster.
    package var importSource: [UInt8]?

    package init(incarnation: UInt32, partitions: Partitions, created: WallTime, importSource: [UInt8]? = nil) {
        self.incarnation = incarnation
        self.partitions = partitions
        self.created = created
        self.importSource = importSource
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let number: UInt32 = try fields.integer()
        incarnation = try fields.valid((1..<1 << 24).contains(number) ? number : nil)
        partitions = try fields.valid(Partitions(count: Int(fields.integer(UInt8.self))))
        created = try fields.time()
        let source = fields.rest()
        guard source.isEmpty || source.count == Self.sourceBytes else { throw fields.damaged }
        importSource = source.isEmpty ? nil : source
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(incarnation)
        fields.integer(UInt8(clamping: partitions.count))
        fields.time(created)
        fields.rest(importSource ?? [])
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
