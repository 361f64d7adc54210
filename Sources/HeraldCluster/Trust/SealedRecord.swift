/// A record that only those who have the cluster key can read: a fact of the trust that all nodes share.
package struct SealedRecord: LogRecord, Hashable {
    package static let kind: StaticString = "sealed trust"

    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        bytes = fields.rest()
    }

    package func write(to fields: inout RecordWriter) {
        fields.rest(bytes)
    }
}
