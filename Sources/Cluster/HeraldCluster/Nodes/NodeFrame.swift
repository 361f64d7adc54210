import NIOCore

/// A message between nodes as it travels: its sender, and which answer it belongs to.
struct NodeFrame: LogRecord, Hashable {
    static let kind: StaticString = "message between nodes"

    let sender: NodeName
    /// The asking node's number of the question; 0 for a message that nobody answers.
    let question: UInt64
    /// The index of this part of an answer.
    let part: UInt16
    /// The number of parts, at least 1.
    let parts: UInt16
    let payload: ByteBuffer

    init(sender: NodeName, question: UInt64 = 0, part: UInt16 = 0, parts: UInt16 = 1, payload: ByteBuffer) {
        self.sender = sender
        self.question = question
        self.part = part
        self.parts = parts
        self.payload = payload
    }

    var capacity: Int { 96 + payload.readableBytes }

    init(fields: inout RecordReader) throws(RecordError) {
        sender = try fields.valid(NodeName(fields.text()))
        question = try fields.integer()
        part = try fields.integer()
        parts = try fields.integer()
        guard part < parts else { throw fields.damaged }
        payload = fields.remaining()
    }

    func write(to fields: inout RecordWriter) {
        fields.text(sender.text)
        fields.integer(question)
        fields.integer(part)
        fields.integer(parts)
        fields.buffer(payload)
    }
}
