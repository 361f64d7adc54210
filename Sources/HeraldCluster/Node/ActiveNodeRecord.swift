/// The record of the node that serves a cluster.
package struct ActiveNodeRecord: LogRecord, Hashable {
    package static let kind: StaticString = "active node"

    package let node: NodeName
    /// A random number of the node's data folder: of one folder, only one process runs, because it holds a lock.
    package let folder: UInt64
    /// A random number of the process.
    package let process: UInt64

    package init(node: NodeName, folder: UInt64, process: UInt64 = .random(in: 0 ... .max)) {
        self.node = node
        self.folder = folder
        self.process = process
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        node = try fields.valid(NodeName(fields.text()))
        folder = try fields.integer()
        process = try fields.integer()
    }

    package func write(to fields: inout RecordWriter) {
        fields.text(node.text)
        fields.integer(folder)
        fields.integer(process)
    }
}
