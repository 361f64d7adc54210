package import HeraldModel

/// The record of a node, which its process renews while it serves.
package struct NodeRecord: LogRecord, Hashable {
    package static let kind: StaticString = "node"

    /// The state of a node, as it says itself.
    package enum State: UInt8, Hashable, Sendable {
        case serving = 1
        /// It was stopped, and holds no connection any more.
        case left = 2
    }

    package let node: NodeName
    /// A random number of the node's data folder: of one folder, only one process runs, because it holds a lock.
    package let folder: UInt64
    /// A number of the process, which rises from one process of the node to the next: ``makeIncarnation(at:)``.
    package let incarnation: UInt64
    /// The version of Herald.
    package let version: String
    package let started: WallTime
    /// The newest token key that the node can open tokens with.
    package var newestTokenKey: UInt32
    package var state: State

    package init(
        node: NodeName,
        folder: UInt64,
        incarnation: UInt64,
        version: String,
        started: WallTime,
        newestTokenKey: UInt32,
        state: State = .serving
    ) {
        self.node = node
        self.folder = folder
        self.incarnation = incarnation
        self.version = version
        self.started = started
        self.newestTokenKey = newestTokenKey
        self.state = state
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        node = try fields.valid(NodeName(fields.text()))
        folder = try fields.integer()
        incarnation = try fields.integer()
        version = try fields.text()
        started = try fields.time()
        newestTokenKey = try fields.integer()
        state = try fields.valid(State(rawValue: fields.integer()))
    }

    package func write(to fields: inout RecordWriter) {
        fields.text(node.text)
        fields.integer(folder)
        fields.integer(incarnation)
        fields.text(version)
        fields.time(started)
        fields.integer(newestTokenKey)
        fields.integer(state.rawValue)
    }

    /// The number of a process that begins now: the milliseconds of the present, and 16 bits of chance.
    package static func makeIncarnation(at now: WallTime) -> UInt64 {
        UInt64(clamping: now.milliseconds) << 16 | .random(in: 0...0xFFFF)
    }

    /// The claims of the process.
    package var claims: ClaimRecord { ClaimRecord(node: node, incarnation: incarnation) }

    /// The data folder in words, for errors.
    package var folderName: String { String(folder, radix: 16) }
}

extension LogSubject {
    /// The record of a node.
    static func node(_ name: NodeName) -> LogSubject { meta("node.\(name.text)") }

    /// The records of all nodes.
    static let nodes = meta("node.*")
}
