import NIOCore

/// A message between nodes as it travels: its sender, and which answer it belongs to.
struct NodeFrame: LogRecord, Hashable {
    static let kind: StaticString = "message between nodes"

    let sender: NodeName
    /// The asking node's number of the question; 0 for a message that nobody answers.
    var question: UInt64 = 0
    /// The index of this part of an answer.
    var part: UInt16 = 0
    /// The number of parts, at least 1.
    var parts: UInt16 = 1
    let payload: ByteBuffer

    var capacity: Int { 96 + payload.readableBytes }

    func write(to fields: inout RecordWriter) {
        fields.text(sender.text)
        fields.integer(question)
        fields.integer(part)
        fields.integer(parts)
        fields.buffer(payload)
    }
}

extension NodeFrame {
    init(fields: inout RecordReader) throws(RecordError) {
        sender = try fields.valid(NodeName(fields.text()))
        question = try fields.integer()
        part = try fields.integer()
        parts = try fields.integer()
        guard part < parts else { throw fields.damaged }
        payload = fields.remaining()
    }
}
