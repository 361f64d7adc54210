import ArgumentParser
import Foundation
import HeraldCluster
import HeraldModel
import HeraldNATS
import LoadKit
import NIOCore
import Synchronization

/// Carries out the orders of ``RingBench``.
final class RingNode: Sendable {
    private struct Held {
        let fence: UInt64
        let subscription: NATSConnection.Subscription?
    }

    private struct State {
        var held: [DeviceNumber: Held] = [:]
        var table = RingTable()
        /// Waits for a device in the table.
        var awaited: (device: DeviceNumber, done: @Sendable (UInt64) -> Void)?
    }

    private let connection: NATSConnection
    private let jetStream: JetStream
    private let way: RingBench.Way
    private let partitions: Partitions
    private let claim: ByteBuffer
    private let payload: ByteBuffer
    private let state = Mutex(State())
    private let consumers = Mutex<[OrderedConsumer]>([])

    init(_ connection: NATSConnection, name: NodeName, way: RingBench.Way, partitions: Partitions, payload: Int) throws
    {
        self.connection = connection
        self.way = way
        self.partitions = partitions
        self.payload = ByteBuffer(repeating: UInt8(ascii: "x"), count: payload - 8)
        jetStream = JetStream(connection)
        claim = ClaimRecord(node: name, incarnation: .random(in: 1...UInt64.max)).body
        guard way == .table else { return }
        _ = try connection.subscribe(to: "hrld.node.\(name.text).ring") { [connection] in
            RingNode.answer($0, connection)
        }
        consumers.withLock { consumers in
            for partition in partitions.all { consumers.append(follow(partition)) }
            for consumer in consumers { consumer.start() }
        }
    }

    func obey(_ order: String, _ numbers: [Int]) async throws -> [String: any Sendable] {
        switch order {
        case "streams":
            for partition in partitions.all {
                let definition = StreamDefinition(.mailbox(partition), replicas: 3)
                _ = try await jetStream.createStream(
                    definition.configuration(at: WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)))
                )
            }
            return ["streams": partitions.count]
        case "connect": return await each(numbers, connect)
        case "disconnect": return await each(numbers, disconnect)
        case "ring": return await each(numbers) { self.ring($0, $1) }
        case "await":
            let device = DeviceNumber(UInt64(numbers[0]))
            let since = await withCheckedContinuation { continuation in
                awaitRing(device) { continuation.resume(returning: $0) }
            }
            return ["since": since]
        case "reach":
            let since = await withCheckedContinuation { continuation in
                reach(DeviceNumber(UInt64(numbers[0]))) { continuation.resume(returning: $0) }
            }
            return ["since": since]
        case "count": return state.withLock { ["held": $0.held.count, "table": $0.table.count] }
        default: throw ValidationError("There is no order \(order).")
        }
    }

    /// Does something for devices, some at a time, and counts the outcomes.
    private func each(
        _ numbers: [Int],
        _ body: @escaping @Sendable (DeviceNumber, @escaping @Sendable (String) -> Void) -> Void
    ) async -> [String: any Sendable] {
        let (first, count, window) = (numbers[0], numbers[1], numbers[2])
        var answer: [String: Int] = [:]
        await withTaskGroup(of: [String: Int].self) { group in
            for lane in 0..<min(window, count) {
                group.addTask {
                    var outcomes: [String: Int] = [:]
                    for number in stride(from: first + lane, to: first + count, by: window) {
                        let outcome = await withCheckedContinuation { continuation in
                            body(DeviceNumber(UInt64(number))) { continuation.resume(returning: $0) }
                        }
                        outcomes[outcome, default: 0] += 1
                    }
                    return outcomes
                }
            }
            for await outcomes in group { answer.merge(outcomes, uniquingKeysWith: +) }
        }
        answer["at"] = Int(MonotonicTime.now.nanoseconds)
        return answer
    }

    // MARK: - Claims

    private func connect(_ device: DeviceNumber, _ done: @escaping @Sendable (String) -> Void) {
        // A ring before the claim is dropped, so the subscription may come first.
        let subscription =
            way == .subscriptions
            ? try? connection.subscribe(to: ringSubject(device)) { [connection] in RingNode.answer($0, connection) }
            : nil
        let partition = partitions.partition(of: device)
        jetStream.publish(claim, to: LogSubject.claim(device, partition).text, within: .seconds(10)) { [self] outcome in
            guard case .stored(let fence) = outcome else { return done("failed") }
            state.withLock { $0.held[device] = Held(fence: fence, subscription: subscription) }
            done("done")
        }
    }

    private func disconnect(_ device: DeviceNumber, _ done: @escaping @Sendable (String) -> Void) {
        guard let held = state.withLock({ $0.held.removeValue(forKey: device) }) else { return done("failed") }
        if let subscription = held.subscription { connection.unsubscribe(subscription) }
        let tombstone = LogMessage.tombstone(
            .claim(device, partitions.partition(of: device)),
            expecting: held.fence
        )
        jetStream.publish(
            tombstone.payload,
            to: tombstone.subject.text,
            expectedLastSubjectSequence: tombstone.expectedSequence,
            timeToLive: tombstone.timeToLive,
            within: .seconds(10)
        ) { outcome in
            if case .stored = outcome { done("done") } else { done("failed") }
        }
    }

    private func follow(_ partition: Partition) -> OrderedConsumer {
        OrderedConsumer(
            jetStream,
            stream: LogStream.mailbox(partition).name,
            subjects: [LogSubject.claims(partition).text],
            from: .newest
        ) { [self] event in
            switch event {
            case .message(let message): apply(message)
            case .caughtUp: RingBench.say(["event": "caughtUp", "at": MonotonicTime.now.nanoseconds])
            case .interrupted: RingBench.say(["event": "interrupted", "at": MonotonicTime.now.nanoseconds])
            case .resumed: RingBench.say(["event": "resumed", "at": MonotonicTime.now.nanoseconds])
            }
        }
    }

    private func apply(_ message: StoredMessage) {
        guard let device = LogSubject(message.subject).claimedDevice else { return }
        let node = message.payload.readableBytes > 0 ? try? ClaimRecord(message.payload).node : nil
        let done = state.withLock { state -> (@Sendable (UInt64) -> Void)? in
            state.table.apply(device, node, message.sequence)
            guard node != nil, state.awaited?.device == device else { return nil }
            defer { state.awaited = nil }
            return state.awaited?.done
        }
        done?(MonotonicTime.now.nanoseconds)
    }

    // MARK: - Rings

    private func ringSubject(_ device: DeviceNumber) -> String { "hrld.ring.\(String(device.value, radix: 36))" }

    private static func answer(_ ring: NATSMessage, _ connection: NATSConnection) {
        if let inbox = ring.replyTo { try? connection.publish(ByteBuffer(integer: UInt8(1)), to: inbox) }
    }

    private func ring(
        _ device: DeviceNumber,
        within time: Duration = .seconds(2),
        _ done: @escaping @Sendable (String) -> Void
    ) {
        let subject: String
        if way == .table {
            guard let holder = state.withLock({ $0.table.holder(of: device) }) else { return done("nobody") }
            subject = "hrld.node.\(holder.text).ring"
        } else {
            subject = ringSubject(device)
        }
        var body = ByteBuffer(integer: device.value)
        body.writeImmutableBuffer(payload)
        connection.request(body, to: subject, within: time) { result in
            switch result {
            case .success: done("answered")
            case .failure(let error): done(error.kind.rawValue)
            }
        }
    }

    private func awaitRing(_ device: DeviceNumber, _ done: @escaping @Sendable (UInt64) -> Void) {
        guard way == .table else { return reach(device, done) }
        let isThere = state.withLock { state in
            guard state.table.holder(of: device) == nil else { return true }
            state.awaited = (device, done)
            return false
        }
        if isThere { done(MonotonicTime.now.nanoseconds) }
    }

    /// Rings until the holder answers, and reports when that ring was sent.
    private func reach(_ device: DeviceNumber, _ done: @escaping @Sendable (UInt64) -> Void) {
        let begin = MonotonicTime.now.nanoseconds
        ring(device, within: .milliseconds(50)) { [self] outcome in
            if outcome == "answered" { return done(begin) }
            connection.eventLoop.scheduleTask(in: .microseconds(100)) { [self] in reach(device, done) }
        }
    }
}

/// All connected devices of a cluster, and the nodes that hold them.
private struct RingTable {
    private struct Claim {
        let sequence: UInt64
        let node: UInt16
    }

    private var claims: [DeviceNumber: Claim] = [:]
    private var names: [NodeName] = []
    private var numbers: [NodeName: UInt16] = [:]

    var count: Int { claims.count }

    func holder(of device: DeviceNumber) -> NodeName? { claims[device].map { names[Int($0.node)] } }

    /// Notes a claim, or with nil a release.
    mutating func apply(_ device: DeviceNumber, _ node: NodeName?, _ sequence: UInt64) {
        guard sequence > claims[device]?.sequence ?? 0 else { return }
        guard let node else {
            claims[device] = nil
            return
        }
        let number = numbers[node] ?? UInt16(names.count)
        if Int(number) == names.count {
            names.append(node)
            numbers[node] = number
        }
        claims[device] = Claim(sequence: sequence, node: number)
    }
}
