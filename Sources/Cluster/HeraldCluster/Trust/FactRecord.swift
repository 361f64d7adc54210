/// A fact of the trust that all nodes share.
package struct FactRecord: LogRecord, Hashable {
    package static let kind: StaticString = "fact of trust"

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
