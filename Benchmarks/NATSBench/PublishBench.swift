import ArgumentParser
import Foundation
import HeraldNATS
import LoadKit
import NIOCore
import Synchronization

/// Makes the stream of ``PublishBench`` in a server's memory.
struct MakeStream: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "stream")

    @OptionGroup var connection: ConnectionOptions
    @Option(help: "Subject of the stream.") var subject: String

    func run() async throws {
        let connection = try await connection.connected()
        var configuration = StreamConfiguration(name: "BENCH", subjects: [subject])
        configuration.storage = .memory
        configuration.messages = 10_000
        _ = try await JetStream(connection).createStream(configuration)
        await connection.close()
    }
}

/// Publishes to a stream as fast as it acknowledges, with a number of messages in flight, and prints rate and CPU time.
struct PublishBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "publish")

    @OptionGroup var connection: ConnectionOptions
    @Option(help: "Subject of all messages.") var subject: String
    @Option(help: "Messages.") var count = 200_000
    @Option(help: "Messages in flight.") var window = 1024
    @Option(help: "Payload bytes.") var payload = 500

    func validate() throws {
        guard count > 0, window > 0, payload >= 0 else { throw ValidationError("Counts are 1 or more.") }
    }

    func run() async throws {
        let connection = try await connection.connected()
        let publisher = Publisher(JetStream(connection), subject: subject, payload: payload, count: count)
        let (clock, begin, processor) = (ContinuousClock(), ContinuousClock.now, ProcessorTime.seconds)
        await publisher.run(window: window)
        let seconds = (clock.now - begin) / .seconds(1)
        let spent = ProcessorTime.seconds - processor
        let failed = publisher.failures
        await connection.close()
        guard failed == 0 else { throw ValidationError("\(failed) messages were not stored.") }
        print(#"{"rate": \#(Double(count) / seconds), "cpu_us": \#(spent * 1e6 / Double(count))}"#)
    }
}

/// Keeps messages in flight: each answer sends the next one.
private final class Publisher: Sendable {
    private struct State {
        var left: Int
        var open = 0
        var failures = 0
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let jetStream: JetStream
    private let subject: String
    private let payload: ByteBuffer
    private let state: Mutex<State>

    init(_ jetStream: JetStream, subject: String, payload: Int, count: Int) {
        self.jetStream = jetStream
        self.subject = subject
        self.payload = ByteBuffer(repeating: UInt8(ascii: "x"), count: payload)
        state = Mutex(State(left: count))
    }

    var failures: Int { state.withLock { $0.failures } }

    func run(window: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = continuation }
            for _ in 0..<window { sendNext() }
        }
    }

    private func sendNext() {
        let sends = state.withLock { state in
            guard state.left > 0 else { return false }
            state.left -= 1
            state.open += 1
            return true
        }
        guard sends else { return }
        jetStream.publish(payload, to: subject, within: .seconds(30)) { [self] outcome in
            let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.open -= 1
                if case .stored = outcome {} else { state.failures += 1 }
                guard state.left == 0, state.open == 0 else { return nil }
                return state.waiter.take()
            }
            waiter?.resume()
            sendNext()
        }
    }
}
