import Foundation
import HeraldModel
import Synchronization

/// Runs the programs of apps: a few at a time, the others in their turn.
actor ProgramRunner {
    private let folder: AgentFolder
    private let limits: ProgramLimits
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private let running = Mutex<[Int: (app: Topic, program: Program)]>([:])

    init(_ folder: AgentFolder, limits: ProgramLimits) {
        self.folder = folder
        self.limits = limits
        free = max(1, limits.atOnce)
    }

    /// How many programs run or wait for their turn.
    nonisolated var count: Int { running.withLock { $0.count } }

    /// Runs a program to its end, when its turn has come.
    func run(_ run: PhoneRun) async -> Program.Outcome {
        guard let call = call(for: run) else { return Program.Outcome(end: .notStarted("cannot be started")) }
        let program = Program(call, limits: limits)
        // Those that wait are ended too.
        running.withLock { $0[run.number] = (run.app, program) }
        defer { running.withLock { $0[run.number] = nil } }
        await takeTurn()
        defer { giveTurn() }
        guard !Task.isCancelled, !program.isUnwanted else {
            return Program.Outcome(end: .notStarted("was not wanted any more"))
        }
        return await withTaskCancellationHandler {
            await program.run()
        } onCancel: {
            program.end()
        }
    }

    /// Ends the programs of an app.
    nonisolated func end(_ app: Topic) {
        running.withLock { running in
            for entry in running.values where entry.app == app { entry.program.end() }
        }
    }

    private func takeTurn() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func giveTurn() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }

    private func call(for run: PhoneRun) -> Program.Call? {
        let container = folder.containerPath(run.app)
        guard let input = try? ProgramInput.bytes(run) else { return nil }
        return Program.Call(
            path: "\(folder.bundlePath(run.app))/Programs/\(run.event.rawValue)",
            folder: container,
            environment: [
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": container,
                "HERALD_APP": run.app.name,
                "HERALD_EVENT": run.event.rawValue,
                "HERALD_LANGUAGE": run.language ?? "",
                "HERALD_SOCKET": folder.socketPath,
                "HERALD_CONTAINER": container,
            ],
            input: input
        )
    }
}

/// The object that a program gets on standard input.
enum ProgramInput {
    static func bytes(_ run: PhoneRun) throws -> [UInt8] {
        var members: [String: PayloadValue] = [
            "event": .string(run.event.rawValue),
            "topic": .string(run.arrival?.topic.name ?? run.app.name),
            "apns_id": run.arrival?.apnsID.map { .string($0) } ?? .null,
            "state": .string(run.state.rawValue),
            "language": run.language.map { .string($0) } ?? .null,
        ]
        if let action = run.action { members["action"] = .string(action) }
        if let text = run.text { members["text"] = .string(text) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var bytes = Array(try encoder.encode(members))
        // The payload goes in as it came: numbers keep all their digits.
        bytes.removeLast()
        bytes += Array(",\"payload\":".utf8)
        bytes += run.arrival.map { PayloadLine.bytes(Array($0.payload)) } ?? Array("null".utf8)
        return bytes + Array("}\n".utf8)
    }
}

/// A payload as one line of JSON.
enum PayloadLine {
    /// The payload with its line breaks made spaces, which mean the same (RFC 8259 §7: strings have none); null where it
    /// is not JSON.
    static func bytes(_ payload: [UInt8]) -> [UInt8] {
        if case .malformed = PayloadScanner.scan(payload) { return Array("null".utf8) }
        return payload.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }
    }
}

extension Program.Outcome {
    /// What a background run came to: its last line, unless it failed.
    var background: SawRecord.BackgroundOutcome {
        guard case .exited(0) = end, !isTooLong else { return end == .ended ? .timedOut : .failed }
        let line = output.split(separator: UInt8(ascii: "\n")).last.map { String(decoding: $0, as: UTF8.self) } ?? ""
        switch line.trimmingCharacters(in: .whitespaces) {
        case "new data": return .newData
        case "no data", "": return .noData
        default: return .failed
        }
    }

    /// What a service program made of a payload: a JSON object that a notification could have.
    var payload: [UInt8]? {
        guard case .exited(0) = end, !isTooLong, !output.isEmpty,
            output.count <= PushType.voip.maximumPayloadBytes, case .object = PayloadScanner.scan(output)
        else { return nil }
        return output
    }

    /// What went wrong, in words; nil if nothing did.
    var words: String? {
        let more = complaint.isEmpty ? "" : ": \(complaint)"
        return switch end {
        case .exited(0) where isTooLong: "said too much"
        case .exited(0): nil
        case .exited(let code): "failed with exit code \(code)\(more)"
        case .signalled(let signal): "was ended by signal \(signal)\(more)"
        case .ended: "took too long and was ended"
        case .notStarted(let reason): reason
        }
    }
}
