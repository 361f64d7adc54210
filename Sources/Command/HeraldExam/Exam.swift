import Foundation
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldService

/// An examination of a sender: plays scenarios one after the other, and says what became of each push.
package struct Exam: Sendable {
    package var sender: SenderKind
    /// The name of the sender in reports.
    package var name: String
    /// The scenarios, in their order.
    package var scenarios = Scenario.all
    /// How long the sender may be silent.
    package var patience = Duration.seconds(40)
    /// The names by which senders find the service, the first of which they are told.
    package var hosts = ["localhost"]
    /// 0 for a free one.
    package var port = 0
    /// The data folder of the service.
    package var data: String
    /// The folder of the sender's files, which the caller removes.
    package var scratch: String
    /// Herald's version, for reports.
    package var version: String

    package init(_ sender: SenderKind, name: String, data: String, scratch: String, version: String) {
        self.sender = sender
        self.name = name
        self.data = data
        self.scratch = scratch
        self.version = version
    }

    /// Plays the scenarios; `began` gets the address of the service, and `progress` the result of each scenario, once.
    /// - Throws: An error of the service.
    package func run(
        began: (ExamPlace) -> Void,
        progress: (ScenarioResult) -> Void
    ) async throws -> ExamReport {
        Orphans.adopt()
        let started = ServiceClock().now()
        let begun = ContinuousClock.now
        let stage = try await ExamStage(at: data, hosts: hosts, port: port)
        var results: [ScenarioResult] = []
        do {
            began(await stage.place)
            for scenario in scenarios {
                try Task.checkCancellation()
                let result = try await play(scenario, on: stage)
                try Task.checkCancellation()
                results.append(result)
                progress(result)
            }
        } catch {
            try? await stage.stop()
            throw error
        }
        try await stage.stop()
        return ExamReport(
            sender: name,
            driven: sender.words,
            herald: version,
            date: started.rfc3339,
            seconds: (ContinuousClock.now - begun).inSeconds,
            results: results
        )
    }

    private func play(_ scenario: Scenario, on stage: ExamStage) async throws -> ScenarioResult {
        let begun = ContinuousClock.now
        if let hindrance = sender.hindrance(to: scenario) {
            return ScenarioResult(scenario, .notApplicable, hindrance)
        }
        let ledger = Ledger(
            scenario: scenario.id,
            hasWords: sender.hasWords,
            answersFirst: sender.answersFirst,
            movesClock: scenario.movesClock
        )
        try await stage.begin(ledger, devices: scenario.pushes)
        // Files of an earlier scenario may still be read by what it left behind.
        let folder = "\(scratch)/\(scenario.id)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let player = ScenarioPlayer(
            scenario: scenario,
            ledger: ledger,
            stage: stage,
            sender: sender.sender(ledger, folder: folder),
            exam: self
        )
        let complaints = try await player.play()
        try await stage.end()
        var result = ScenarioResult(scenario, ledger, complaints: complaints)
        result.seconds = (ContinuousClock.now - begun).inSeconds
        return result
    }
}

/// Plays the steps of one scenario with one sender.
private struct ScenarioPlayer {
    let scenario: Scenario
    let ledger: Ledger
    let stage: ExamStage
    let sender: any Sender
    let exam: Exam
    var count = 0

    /// Plays the steps until the sender cannot be driven.
    /// - Returns: The last lines of the sender's standard error.
    /// - Throws: An error of the service.
    consuming func play() async throws -> [String] {
        do {
            for step in scenario.steps where ledger.fault == nil { try await perform(step) }
        } catch let fault as Undriven {
            ledger.fail(fault)
        }
        let complaints = await sender.close()
        await Orphans.end()
        let evidence = ledger.evidence
        if evidence.hasWords, !scenario.expectation.isUntrusted, evidence.requests.isEmpty, evidence.unmatched == 0,
            evidence.pushes.allSatisfy({ $0.word == nil })
        {
            ledger.fail(Undriven("it sent no push and wrote no line in \(exam.patience.components.seconds) s"))
        }
        return complaints
    }

    private mutating func perform(_ step: Scenario.Step) async throws {
        switch step {
        case .drill(let kind, let push, let first):
            let registered = await stage.registered
            let slot = push.map { registered[$0].slot }
            try await stage.drill(kind, slot: slot, first: first)
        case .endDrills: await stage.endDrills()
        case .send(let number, let shape):
            try await sender.send(await pushes(number, shape), to: await stage.place)
        case .settle:
            await ledger.wait(exam.patience) { evidence in
                evidence.pushes.allSatisfy { $0.word != nil || !evidence.hasWords && !$0.accepted.isEmpty }
            }
        case .requests(let number):
            await ledger.wait(exam.patience) { $0.requests.count >= number }
        case .advance(let duration): await stage.advance(by: duration)
        case .restart:
            let begun = await stage.now
            try await stage.restart()
            ledger.noteRestart(begun...max(begun, await stage.now))
        case .impersonate(let impostor): try await stage.impersonate(impostor)
        }
    }

    private mutating func pushes(_ number: Int, _ shape: PushShape) async -> [ExamPush] {
        let (registered, now) = await (stage.registered, stage.now)
        let numbers = count..<count + number
        count += number
        return numbers.map { number in
            let (slot, token) = registered[number]
            let push = ExamPush(
                number: number,
                token: shape.tokenBytes.map { Self.token(number, bytes: $0) } ?? token.hex,
                payload: Self.payload(ledger.mark(number), shape),
                shape: shape,
                expiration: shape.expiration.map { ($0 + .milliseconds(now.milliseconds)).components.seconds }
            )
            ledger.add(push, slot: shape.tokenBytes == nil ? slot : nil)
            return push
        }
    }

    /// A device token that Herald did not make.
    private static func token(_ number: Int, bytes: Int) -> String {
        String(repeating: String(0xA1 + number % 0x50, radix: 16), count: bytes)
    }

    private static func payload(_ mark: String, _ shape: PushShape) -> String {
        let aps = shape.pushType == "background" ? #"{"content-available":1}"# : #"{"alert":"exam"}"#
        let start = #"{"aps":\#(aps),"exam":"\#(mark)""#
        guard let bytes = shape.bytes else { return start + "}" }
        let fill = String(repeating: "x", count: max(0, bytes - start.utf8.count - #","fill":""}"#.utf8.count))
        return start + #","fill":"\#(fill)"}"#
    }
}

extension Duration {
    /// Seconds, with a tenth.
    var inSeconds: Double { (self / .milliseconds(100)).rounded() / 10 }
}
