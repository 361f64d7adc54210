import ArgumentParser
import HeraldConsole
import HeraldModel
import HeraldProvider
import HeraldService

/// An app on all devices with some labels, for `herald send --label`.
struct LabelledApp: Sendable {
    /// The token of a request before that of a device replaces it.
    static let anyToken = PushToken("00")
    /// Notifications without an answer at a time.
    private static let window = 64

    private let labels: [LabelFilter]
    private let topic: Topic
    private let service: ControlClient
    private let isJSON: Bool

    /// - Returns: nil if the options name a token.
    init?(_ options: SendOptions) throws {
        guard !options.labels.isEmpty else { return nil }
        guard options.token == nil else { throw ValidationError("Use a token, or --label.") }
        labels = options.labels
        guard let topic = options.topic.flatMap({ Topic($0) }) else {
            throw ValidationError("--label needs --topic, a bundle identifier like com.example.app.")
        }
        self.topic = topic
        service = try ControlClient.ofService(in: options.peer.dataFolder)
        isJSON = options.json
    }

    /// The outcome for a device.
    private struct Outcome: Encodable {
        let device: String
        let name: String?
        /// nil without an answer, and if nothing was sent any more.
        var answer: SendReport?

        var words: String {
            guard let answer else { return "no answer, or not sent" }
            guard let reason = answer.reason else { return answer.explanation ?? "accepted" }
            return "refused: \(reason)"
        }
    }

    /// Sends a notification to the app on each device, and prints the outcome of each.
    /// - Throws: `ExitCode.failure` if one was refused, ``CommandError/Code/refused`` if no device has the app, or
    ///   `ProviderError` after the first without an answer: further ones are not sent then.
    func send(_ request: PushRequest, _ client: ProviderClient, named host: String) async throws {
        var values = [Ask.topic(topic)] + labels.map { AdminAPI.label($0) }
        if let environment = PushEnvironment.named(by: host) {
            values.append(AdminAPI.tokenEnvironment(environment.rawValue))
        }
        var (count, refused) = (0, 0)
        var failure: (any Error)?
        try await Terminal.sayList(heading: isJSON ? nil : ["DEVICE", "NAME", "OUTCOME"]) { after in
            let page = try await service.page(AdminAPI.appTokens, after: after, values)
            let outcomes: [Outcome]
            (outcomes, failure) = await send(request, to: page.items, client)
            count += outcomes.count
            refused += outcomes.count { $0.answer?.reason != nil }
            return (outcomes, failure == nil ? page.next : nil)
        } row: { (outcome: Outcome) in
            [outcome.device, outcome.name ?? "-", outcome.words]
        }
        if let failure { throw failure }
        guard count > 0 else {
            let all = labels.map { "\($0)" }.joined(separator: ", ")
            throw CommandError(.refused, "no device with the label \(all) has the app \(topic)")
        }
        if refused > 0 { throw ExitCode.failure }
    }

    private func send(
        _ request: PushRequest,
        to entries: [DeviceTokenEntry],
        _ client: ProviderClient
    ) async -> ([Outcome], failure: (any Error)?) {
        await withTaskGroup(of: (Int, Result<SendReport, any Error>).self) { group in
            var outcomes = entries.map { Outcome(device: $0.device, name: $0.name) }
            var failure: (any Error)?
            func note(_ index: Int, _ result: Result<SendReport, any Error>) {
                switch result {
                case .success(let report): outcomes[index].answer = report
                case .failure(let error): failure = failure ?? error
                }
            }
            for (index, entry) in entries.enumerated() {
                if index >= Self.window, let (done, result) = await group.next() { note(done, result) }
                guard failure == nil, let token = PushToken(entry.token) else { break }
                group.addTask {
                    var own = request
                    own.token = token
                    do { return (index, .success(SendReport(try await client.send(own)))) } catch {
                        return (index, .failure(error))
                    }
                }
            }
            for await (done, result) in group { note(done, result) }
            return (outcomes, failure)
        }
    }
}
