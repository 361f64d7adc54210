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
    ///
    /// `journal`, `search` and `tallies` read this node's own journal. `disconnect` ends a device's connection to this
    /// node, and returns whether there was one.
    package func answer(
        journal: @escaping @Sendable (JournalQuestion, _ limit: Int) async throws -> JournalAnswer,
        search: @escaping @Sendable (SearchInquiry) async throws -> NodeSearchPage,
        tallies: @escaping @Sendable (TallyQuestion) async throws -> [Int64: [String: Int]],
        report: @escaping @Sendable () -> NodeReport,
        disconnect: @escaping @Sendable (DisconnectOrder) -> Bool
    ) {
        receive(.journal) { (inquiry: JournalInquiry) -> JournalAnswer? in
            guard let question = inquiry.question else { return nil }
            return try await journal(question, inquiry.limit)
        }
        receive(.search) { (inquiry: SearchInquiry) in try await search(inquiry) }
        receive(.tallies) { (question: TallyQuestion) in try await tallies(question) }
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

    /// Answers questions of a kind.
    ///
    /// Without an answer, the asking node says that the lines of this one are missing.
    private func receive<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
        _ kind: NodeMessageKind,
        _ work: @escaping @Sendable (Question) async throws -> Answer?
    ) {
        exchange.receive(kind) { payload, _, reply in
            guard let question = Self.decode(payload, as: Question.self) else { return }
            Task {
                guard let answer = try? await work(question), let body = Self.encode(answer) else { return }
                reply(body)
            }
        }
    }

    /// The answers of other nodes' journals, by node; nodes without an answer within ``ClusterLimits/answerTime`` are absent.
    package func journal(
        _ question: JournalQuestion,
        limit: Int,
        of nodes: Set<NodeName>
    ) async -> [NodeName: JournalAnswer] {
        await ask(JournalInquiry(question, limit: limit), as: .journal, of: nodes)
    }

    /// The lines that a search finds on other nodes; nodes without an answer are absent.
    package func search(_ inquiry: SearchInquiry, of nodes: Set<NodeName>) async -> [NodeName: NodeSearchPage] {
        await ask(inquiry, as: .search, of: nodes)
    }

    /// The numbers of lines in other nodes' journals, by hour; nodes without an answer are absent.
    func tallies(_ question: TallyQuestion, of nodes: Set<NodeName>) async -> [NodeName: [Int64: [String: Int]]] {
        await ask(question, as: .tallies, of: nodes)
    }

    private func ask<Answer: Decodable>(
        _ question: some Encodable & Sendable,
        as kind: NodeMessageKind,
        of nodes: Set<NodeName>
    ) async -> [NodeName: Answer] {
        guard !nodes.isEmpty, let body = Self.encode(question) else { return [:] }
        return await answers(to: body, as: kind, of: nodes).compactMapValues { Self.decode($0, as: Answer.self) }
    }

    /// The states of nodes; nodes without an answer within ``ClusterLimits/answerTime`` are absent.
    package func reports(of nodes: Set<NodeName>) async -> [NodeName: NodeReport] {
        await answers(to: ByteBuffer(), as: .state, of: nodes).compactMapValues { Self.decode($0, as: NodeReport.self) }
    }

    /// Ends a device's connection to another node.
    /// - Returns: Whether there was one; nil if the node does not answer.
    func disconnect(_ order: DisconnectOrder, at node: NodeName) async -> Bool? {
        let answers: [NodeName: Bool] = await ask(order, as: .disconnect, of: [node])
        return answers[node]
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
