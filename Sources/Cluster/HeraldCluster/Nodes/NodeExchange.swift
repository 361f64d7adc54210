package import NIOCore
import Synchronization

/// Asks and answers of one node's messages, on any carrier that takes bytes to a node or to all.
package final class NodeExchange: NodeMessages {
    /// The receiver of bytes at a node.
    package enum Address: Hashable, Sendable {
        case kind(NodeMessageKind)
        case answers

        /// Its name, as a part of a subject.
        package var text: String {
            switch self {
            case .kind(let kind): kind.rawValue
            case .answers: "answer"
            }
        }

        /// - Returns: nil for a name of another version of Herald.
        package init?(_ text: some StringProtocol) {
            if text == Address.answers.text {
                self = .answers
            } else if let kind = NodeMessageKind(rawValue: String(text)) {
                self = .kind(kind)
            } else {
                return nil
            }
        }
    }

    /// Takes bytes to a node, or to all with nil, this one included.
    package typealias Carry = @Sendable (_ bytes: ByteBuffer, _ address: Address, _ node: NodeName?) -> Void

    private struct Question {
        var asked: Set<NodeName>
        var parts: [NodeName: [UInt16: ByteBuffer]] = [:]
        var answers: [NodeName: ByteBuffer] = [:]
        let done: @Sendable ([NodeName: ByteBuffer]) -> Void
    }

    private struct State {
        var receivers: [NodeMessageKind: NodeMessageReceiver] = [:]
        /// Begins anywhere: an answer to a former process of this name is for no question of this one.
        var lastQuestion = UInt64.random(in: 1 ... .max / 2)
        var questions: [UInt64: Question] = [:]
    }

    private let node: NodeName
    private let scheduler: any ClusterScheduler
    private let carry: Carry
    private let state = Mutex(State())

    package init(node: NodeName, scheduler: any ClusterScheduler, carry: @escaping Carry) {
        self.node = node
        self.scheduler = scheduler
        self.carry = carry
    }

    package func send(_ payload: ByteBuffer, as kind: NodeMessageKind, to node: NodeName) {
        carry(NodeFrame(sender: self.node, payload: payload).body, .kind(kind), node)
    }

    package func sendToAll(_ payload: ByteBuffer, as kind: NodeMessageKind) {
        carry(NodeFrame(sender: node, payload: payload).body, .kind(kind), nil)
    }

    package func ask(
        _ payload: ByteBuffer,
        as kind: NodeMessageKind,
        of nodes: Set<NodeName>,
        within time: Duration,
        _ done: @escaping @Sendable ([NodeName: ByteBuffer]) -> Void
    ) {
        guard !nodes.isEmpty else { return scheduler.run(after: .zero) { done([:]) } }
        let number = state.withLock { state in
            state.lastQuestion += 1
            state.questions[state.lastQuestion] = Question(asked: nodes, done: done)
            return state.lastQuestion
        }
        let bytes = NodeFrame(sender: node, question: number, payload: payload).body
        for node in nodes { carry(bytes, .kind(kind), node) }
        scheduler.run(after: time) { [self] in
            let question = state.withLock { $0.questions.removeValue(forKey: number) }
            if let question { question.done(question.answers) }
        }
    }

    package func receive(_ kind: NodeMessageKind, _ body: @escaping NodeMessageReceiver) {
        state.withLock { $0.receivers[kind] = body }
    }

    /// Forgets all receivers: the node hears no message any more.
    package func close() { state.withLock { $0.receivers = [:] } }

    // MARK: - For the carrier

    /// Bytes have come for this node, or for all; those that are not a message of a node are ignored.
    package func received(_ bytes: ByteBuffer, at address: Address, isForAll: Bool) {
        guard let frame = try? NodeFrame(bytes), !(isForAll && frame.sender == node) else { return }
        switch address {
        case .answers: answered(frame)
        case .kind(let kind):
            guard let receiver = state.withLock({ $0.receivers[kind] }) else { return }
            receiver(frame.payload, frame.sender) { [self] answer in reply(answer, to: frame) }
        }
    }

    private func reply(_ answer: ByteBuffer, to frame: NodeFrame) {
        guard frame.question != 0 else { return }
        var rest = answer
        let count = max(1, (answer.readableBytes + ClusterLimits.nodeMessageBytes - 1) / ClusterLimits.nodeMessageBytes)
        // An answer of more parts than a number can say is none: it would be 32 GiB.
        guard let parts = UInt16(exactly: count) else { return }
        for part in 0..<parts {
            let length = min(rest.readableBytes, ClusterLimits.nodeMessageBytes)
            guard let payload = rest.readSlice(length: length) else { return }
            let answer = NodeFrame(
                sender: node,
                question: frame.question,
                part: part,
                parts: parts,
                payload: payload
            )
            carry(answer.body, .answers, frame.sender)
        }
    }

    private func answered(_ frame: NodeFrame) {
        let question: Question? = state.withLock { state in
            guard var question = state.questions[frame.question], question.asked.contains(frame.sender) else {
                return nil
            }
            question.parts[frame.sender, default: [:]][frame.part] = frame.payload
            if let parts = question.parts[frame.sender], parts.count == Int(frame.parts) {
                var whole = ByteBuffer()
                for (_, part) in parts.sorted(by: { $0.key < $1.key }) { whole.writeImmutableBuffer(part) }
                question.answers[frame.sender] = whole
                question.parts[frame.sender] = nil
                question.asked.remove(frame.sender)
            }
            guard question.asked.isEmpty else {
                state.questions[frame.question] = question
                return nil
            }
            state.questions[frame.question] = nil
            return question
        }
        if let question { question.done(question.answers) }
    }
}
