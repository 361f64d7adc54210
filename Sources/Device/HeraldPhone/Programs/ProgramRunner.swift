import Foundation
import HeraldJSON
import HeraldModel
import Synchronization

/// Runs the programs of apps: a few at a time, the others in order.
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

    /// The number of programs that run or wait.
    nonisolated var count: Int { running.withLock { $0.count } }

    /// Runs a program to its end, when a slot is free.
    func run(_ run: PhoneRun) async -> Program.Outcome {
        let program = Program(call(for: run), limits: limits)
        // end(_:) also ends programs that wait.
        running.withLock { $0[run.number] = (run.app, program) }
        defer { running.withLock { $0[run.number] = nil } }
        await acquireSlot()
        defer { releaseSlot() }
        guard !Task.isCancelled, !program.isCancelled else {
            return Program.Outcome(end: .cancelled)
        }
        return await withTaskCancellationHandler {
            await program.run()
        } onCancel: {
            program.end()
        }
    }

    nonisolated func end(_ app: Topic) {
        running.withLock { running in
            for entry in running.values where entry.app == app { entry.program.end() }
        }
    }

    private func acquireSlot() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    private func releaseSlot() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }

    private func call(for run: PhoneRun) -> Program.Call {
        let container = folder.containerPath(run.app)
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
                "HERALD_FOLDER": folder.path,
                "HERALD_CONTAINER": container,
            ],
            input: ProgramInput.bytes(run)
        )
    }
}

/// The JSON object on the standard input of a program.
enum ProgramInput {
    static func bytes(_ run: PhoneRun) -> [UInt8] {
        var members: JSON.Object = [
            "event": .string(run.event.rawValue),
            "topic": .string(run.arrival?.topic.name ?? run.app.name),
            "apns_id": run.arrival?.apnsID.map { .string($0) } ?? .null,
            "state": .string(run.state.rawValue),
            "language": run.language.map { .string($0) } ?? .null,
        ]
        if let local = run.arrival?.local { members["local"] = .string(local) }
        if let action = run.action { members["action"] = .string(action) }
        if let text = run.text { members["text"] = .string(text) }
        if let news = run.news { members = members.merging(news) }
        return LocalMessage.line(members, payload: run.arrival.map { Array($0.payload) })
    }
}

extension Program.Outcome {
    /// The outcome of a background run: its last line, unless it failed.
    var background: DisplayRecord.BackgroundOutcome {
        guard case .exited(0) = end, !isTooLong else { return end == .ended ? .timedOut : .failed }
        let line = output.split(separator: UInt8(ascii: "\n")).last.map { String(decoding: $0, as: UTF8.self) } ?? ""
        switch line.trimmingCharacters(in: .whitespaces) {
        case "new data": return .newData
        case "no data", "": return .noData
        default: return .failed
        }
    }

    /// The payload that a service program made; nil if it is not a valid one.
    var payload: [UInt8]? {
        guard case .exited(0) = end, !isTooLong, !output.isEmpty,
            output.count <= PushType.voip.maximumPayloadBytes, case .object = PayloadScanner.scan(output)
        else { return nil }
        return output
    }

    /// The failure in words; nil if there is none.
    var words: String? {
        let more = errorLine.isEmpty ? "" : ": \(errorLine)"
        return switch end {
        case .exited(0) where isTooLong: "wrote too much output"
        case .exited(0), .cancelled: nil
        case .exited(let code): "failed with exit code \(code)\(more)"
        case .signalled(let signal): "was killed by signal \(signal)\(more)"
        case .ended: "took too long and was killed"
        case .notStarted(let reason): reason
        }
    }
}
