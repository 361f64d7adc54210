/// The claim of a node on a device's connection; its sequence in the log is the fence.
package struct ClaimRecord: LogRecord, Hashable {
    package static let kind: StaticString = "claim"

    package let node: NodeName
    /// A random number of the node's process: a process that started again does not hold its former connections.
    package let incarnation: UInt64

    package init(node: NodeName, incarnation: UInt64) {
        self.node = node
        self.incarnation = incarnation
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        node = try fields.valid(NodeName(fields.text()))
        incarnation = try fields.integer()
    }

    package func write(to fields: inout RecordWriter) {
        fields.text(node.text)
        fields.integer(incarnation)
    }
}
