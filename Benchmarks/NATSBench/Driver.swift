import Foundation
import HeraldNATS
import NIOCore

/// Carries out the orders of ``Drive``.
final class Driver {
    private let connection: NATSConnection
    private let jetStream: JetStream
    private let output: Output
    private var subscriptions: [Int: NATSConnection.Subscription] = [:]
    private var consumers: [Int: OrderedConsumer] = [:]

    init(_ connection: NATSConnection, _ output: Output) {
        self.connection = connection
        self.output = output
        jetStream = JetStream(connection)
    }

    func obey(_ command: Command) async {
        do {
            switch command.do {
            case "publish", "request", "subscribe", "unsubscribe": try message(command)
            case "create", "info", "delete": try await manage(command)
            case "store": try store(command)
            case "bounded": read(command)
            case "follow", "unfollow": follow(command)
            case "statistics": statistics(command)
            default: output.say(Line(id: command.id, outcome: "error", reason: "no such order"))
            }
        } catch {
            output.say(Self.failure(command.id, error))
        }
    }

    private static func failure(_ id: Int, _ error: any Error) -> Line {
        switch error {
        case let error as NATSError: Line(id: id, outcome: "error", kind: error.kind.rawValue, reason: error.reason)
        case JetStreamError.failed(let error): failure(id, error)
        case JetStreamError.refused(let refusal): refused(id, refusal)
        default: Line(id: id, outcome: "error", reason: "\(error)")
        }
    }

    private static func refused(_ id: Int, _ refusal: JetStreamRefusal) -> Line {
        Line(
            id: id,
            outcome: "refused",
            reason: refusal.description,
            code: refusal.code,
            sequence: refusal.lastSequence
        )
    }

    private func headers(_ command: Command) throws -> NATSHeaders {
        var headers = NATSHeaders()
        for field in command.headers ?? [] where field.count == 2 { try headers.append(field[0], field[1]) }
        return headers
    }

    private func payload(_ command: Command) -> ByteBuffer {
        ByteBuffer(bytes: command.payload ?? Data())
    }

    private func time(_ command: Command) -> Duration {
        .seconds(command.within ?? 10)
    }

    // MARK: - Messages

    private func message(_ command: Command) throws {
        let (id, output, subject) = (command.id, output, command.subject ?? "")
        switch command.do {
        case "publish":
            let headers = try headers(command)
            try connection.publish(payload(command), to: subject, headers: headers, replyTo: command.reply)
            output.say(Line(id: id, outcome: "done"))
        case "request":
            let headers = try headers(command)
            connection.request(payload(command), to: subject, headers: headers, within: time(command)) { result in
                switch result {
                case .success(let message):
                    output.say(Line(id: id, outcome: "answer", message: Line.Message(message)))
                case .failure(let error): output.say(Self.failure(id, error))
                }
            }
        case "subscribe":
            subscriptions[id] = try connection.subscribe(to: subject) { message in
                output.say(Line(id: id, event: "message", message: Line.Message(message)))
            }
            output.say(Line(id: id, outcome: "done"))
        default:
            if let subscription = command.of.flatMap({ subscriptions.removeValue(forKey: $0) }) {
                connection.unsubscribe(subscription)
            }
            output.say(Line(id: id, outcome: "done"))
        }
    }

    private func store(_ command: Command) throws {
        let (id, output) = (command.id, output)
        jetStream.publish(
            payload(command),
            to: command.subject ?? "",
            headers: try headers(command),
            expectedLastSubjectSequence: command.sequence,
            timeToLive: command.ttl.map { .seconds($0) },
            within: time(command)
        ) { outcome in
            switch outcome {
            case .stored(let sequence): output.say(Line(id: id, outcome: "stored", sequence: sequence))
            case .refused(let refusal): output.say(Self.refused(id, refusal))
            case .notSent(let error):
                output.say(Line(id: id, outcome: "notSent", kind: error.kind.rawValue, reason: error.reason))
            case .unknown(let error):
                output.say(Line(id: id, outcome: "unknown", kind: error.kind.rawValue, reason: error.reason))
            }
        }
    }

    // MARK: - Streams

    private func manage(_ command: Command) async throws {
        let name = command.stream ?? ""
        let info: StreamInfo
        switch (command.do, command.configuration) {
        case ("create", let configuration?): info = try await jetStream.createStream(configuration)
        case ("info", _): info = try await jetStream.streamInfo(name)
        default:
            try await jetStream.deleteStream(name)
            return output.say(Line(id: command.id, outcome: "done"))
        }
        let summary = Line.Info(
            name: info.configuration.name,
            created: info.created,
            messages: info.state.messages,
            first: info.state.firstSequence,
            last: info.state.lastSequence,
            replicas: info.cluster?.replicas?.count ?? 0,
            configuration: info.configuration
        )
        output.say(Line(id: command.id, outcome: "done", info: summary))
    }

    private func read(_ command: Command) {
        let (id, output, stream) = (command.id, output, command.stream ?? "")
        let (subjects, bound) = (command.subjects ?? [], command.sequence ?? 0)
        jetStream.readLast(subjects, in: stream, atLeast: bound, within: time(command)) { outcome in
            switch outcome {
            case .complete(let messages, let upTo):
                let found = messages.map { Line.Message($0) }
                output.say(Line(id: id, outcome: "complete", sequence: upTo, messages: found))
            case .behind: output.say(Line(id: id, outcome: "behind"))
            case .nothing: output.say(Line(id: id, outcome: "nothing"))
            case .failed(let error): output.say(Self.failure(id, error))
            }
        }
    }

    private func follow(_ command: Command) {
        let (id, output) = (command.id, output)
        guard command.do == "follow" else {
            command.of.flatMap { consumers.removeValue(forKey: $0) }?.stop()
            return output.say(Line(id: id, outcome: "done"))
        }
        let start: OrderedConsumer.Start =
            command.sequence.map { .after($0) } ?? (command.of == nil ? .all : .newest)
        let consumer = OrderedConsumer(
            jetStream,
            stream: command.stream ?? "",
            subjects: command.subjects ?? [],
            from: start
        ) { event in
            switch event {
            case .message(let message):
                output.say(Line(id: id, event: "message", message: Line.Message(message)))
            case .caughtUp: output.say(Line(id: id, event: "caughtUp"))
            case .interrupted(let error): output.say(Line(id: id, event: "interrupted", reason: "\(error)"))
            case .resumed: output.say(Line(id: id, event: "resumed"))
            }
        }
        consumers[id] = consumer
        consumer.start()
    }

    private func statistics(_ command: Command) {
        let counts = connection.statistics
        output.say(
            Line(
                id: command.id,
                outcome: "done",
                statistics: [
                    "connects": counts.connects, "lateAnswers": counts.lateAnswers, "refusedBusy": counts.refusedBusy,
                    "messagesSent": counts.messagesSent, "messagesReceived": counts.messagesReceived,
                ]
            )
        )
    }
}
