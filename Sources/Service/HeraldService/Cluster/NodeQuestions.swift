import Foundation
package import HeraldCluster
package import HeraldConsole
import HeraldMailbox
import HeraldModel
import NIOCore

/// Questions between the nodes, and of `herald cluster` to them.
///
/// Their bodies are JSON, so nodes of two versions understand each other during an upgrade.
package struct NodeQuestions: Sendable {
    package let exchange: NodeExchange

    package init(exchange: NodeExchange) {
        self.exchange = exchange
    }

    /// Answers what other nodes and `herald cluster` ask of this one.
    /// - Parameters:
    ///   - journal: The lines of this node's own journal.
    ///   - search: The lines of a search in it.
    ///   - tallies: The numbers of lines in it.
    ///   - report: The state of this node.
    ///   - disconnect: Ends a device's connection to this node, and returns whether there was one.
    package func answer(
        journal: @escaping @Sendable (JournalQuestion, _ limit: Int) async throws -> JournalAnswer,
        search: @escaping @Sendable (SearchInquiry) async throws -> NodeSearchPage,
        tallies: @escaping @Sendable (TallyQuestion) async throws -> [Int64: [String: Int]],
        report: @escaping @Sendable () -> NodeReport,
        disconnect: @escaping @Sendable (DisconnectOrder) -> Bool
    ) {
        exchange.receive(.journal) { payload, _, reply in
            guard let inquiry = Self.decode(payload, as: JournalInquiry.self), let question = inquiry.question else {
                return
            }
            Task {
                // Without an answer, the asking node says that the lines of this one are missing.
                guard let answer = try? await journal(question, inquiry.limit), let body = Self.encode(answer) else {
                    return
                }
                reply(body)
            }
        }
        exchange.receive(.search) { payload, _, reply in
            guard let inquiry = Self.decode(payload, as: SearchInquiry.self) else { return }
            Task {
                guard let page = try? await search(inquiry), let body = Self.encode(page) else { return }
                reply(body)
            }
        }
        exchange.receive(.tallies) { payload, _, reply in
            guard let question = Self.decode(payload, as: TallyQuestion.self) else { return }
            Task {
                guard let counts = try? await tallies(question), let body = Self.encode(counts) else { return }
                reply(body)
            }
        }
        exchange.receive(.state) { _, _, reply in
            // Health looks at the disk, and must not hold up the messages of other nodes.
            Task {
                if let body = Self.encode(report()) { reply(body) }
            }
        }
        exchange.receive(.disconnect) { payload, _, reply in
            guard let order = Self.decode(payload, as: DisconnectOrder.self), let body = Self.encode(disconnect(order))
            else { return }
            reply(body)
        }
    }

    /// The answers of other nodes' journals, by node; nodes without an answer within ``ClusterLimits/answerTime`` are absent.
    package func journal(
        _ question: JournalQuestion,
        limit: Int,
        of nodes: Set<NodeName>
    ) async -> [NodeName: JournalAnswer] {
        guard let body = Self.encode(JournalInquiry(question, limit: limit)) else { return [:] }
        let answers = await answers(to: body, as: .journal, of: nodes)
        return answers.compactMapValues { Self.decode($0, as: JournalAnswer.self) }
    }

    /// The lines that a search finds on other nodes; nodes without an answer are absent.
    package func search(_ inquiry: SearchInquiry, of nodes: Set<NodeName>) async -> [NodeName: NodeSearchPage] {
        guard !nodes.isEmpty, let body = Self.encode(inquiry) else { return [:] }
        let answers = await answers(to: body, as: .search, of: nodes)
        return answers.compactMapValues { Self.decode($0, as: NodeSearchPage.self) }
    }

    /// The numbers of lines in other nodes' journals, by hour; nodes without an answer are absent.
    func tallies(_ question: TallyQuestion, of nodes: Set<NodeName>) async -> [NodeName: [Int64: [String: Int]]] {
        guard !nodes.isEmpty, let body = Self.encode(question) else { return [:] }
        let answers = await answers(to: body, as: .tallies, of: nodes)
        return answers.compactMapValues { Self.decode($0, as: [Int64: [String: Int]].self) }
    }

    /// The states of nodes; nodes without an answer within ``ClusterLimits/answerTime`` are absent.
    package func reports(of nodes: Set<NodeName>) async -> [NodeName: NodeReport] {
        await answers(to: ByteBuffer(), as: .state, of: nodes).compactMapValues { Self.decode($0, as: NodeReport.self) }
    }

    /// Ends a device's connection to another node.
    /// - Returns: Whether there was one; nil if the node does not answer.
    func disconnect(_ order: DisconnectOrder, at node: NodeName) async -> Bool? {
        guard let body = Self.encode(order) else { return nil }
        return await answers(to: body, as: .disconnect, of: [node])[node].flatMap { Self.decode($0, as: Bool.self) }
    }

    private func answers(
        to question: ByteBuffer,
        as kind: NodeMessageKind,
        of nodes: Set<NodeName>
    ) async -> [NodeName: ByteBuffer] {
        await withCheckedContinuation { continuation in
            exchange.ask(question, as: kind, of: nodes, within: ClusterLimits.answerTime) {
                continuation.resume(returning: $0)
            }
        }
    }

    /// An operator's order to end the connection of a device.
    package struct DisconnectOrder: Codable, Hashable, Sendable {
        /// The device's number, which is the same at all nodes.
        let device: UInt64
        let staysAway: Bool

        func perform(at postOffice: PostOffice) -> Bool {
            let device = DeviceNumber(device)
            guard postOffice.isConnected(device) else { return false }
            postOffice.dismiss(staysAway ? .sentAway : .disconnected, only: device)
            return true
        }
    }

    private static func encode(_ value: some Encodable) -> ByteBuffer? {
        (try? JSONEncoder().encode(value)).map { ByteBuffer(bytes: $0) }
    }

    private static func decode<Value: Decodable>(_ body: ByteBuffer, as type: Value.Type) -> Value? {
        try? JSONDecoder().decode(type, from: Data(body.readableBytesView))
    }
}
