import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldPhone
import HeraldTrust

/// The messages that a running service caught, for the console.
struct ServiceInbox: CaughtInbox {
    let catcher: CatchService
    let registry: Registry
    let trust: TrustService
    let clock: ServiceClock
    /// The address of the provider API.
    let host: String
    let allowsPublic: Bool

    init(_ assembly: ServiceAssembly) {
        catcher = assembly.trials.catcher
        registry = assembly.delivery.registry
        trust = assembly.trust
        clock = assembly.clock
        host = assembly.configuration.host
        allowsPublic = assembly.configuration.catchesInPublic
    }

    var catching: CatchingState {
        let state = catcher.state
        return CatchingState(
            topics: state.scope,
            until: state.until?.rfc3339,
            messages: state.messages,
            limit: catcher.limits.messages
        )
    }

    func setCatch(_ request: CatchRequest) throws -> CatchingState {
        var scope = request.topics
        if case .topics(let topics) = scope { scope = .topics(Set(topics.map { TopicScope.bundle(of: $0) })) }
        guard scope == .off || allowsPublic || !ListenScope.isPublic(host) else {
            throw AdminError(
                .conflict,
                "\(host) is a public address: payloads are caught there only with --catch-in-public"
            )
        }
        catcher.start(scope, for: .seconds(60 * (request.minutes ?? 60)))
        return catching
    }

    func caught(_ question: CaughtQuestion) async throws -> CaughtAnswer {
        let names = try await CredentialNames(trust)
        var found = CaughtMatches(question)
        found.add(catcher.messages()) { entry($0, names) }
        guard !found.isComplete, question.wait > .zero else { return answer(found) }
        guard catcher.state.scope != .off else {
            throw AdminError(.conflict, "nothing is caught: start the service with --catch all, or PUT /v1/catch")
        }
        guard let arrivals = catcher.arrivals() else {
            let words = "\(catcher.limits.waiting) requests wait for messages already: try again later"
            throw AdminError(.tooMany, words, retryAfter: 1)
        }
        let first = found
        return await withTaskGroup(of: CaughtMatches?.self) { group in
            group.addTask {
                try? await Task.sleep(for: question.wait)
                return nil
            }
            group.addTask { await collect(first, arrivals, names) }
            var last = first
            for await part in group {
                // The end of the wait ends the collection, which then has what came so far.
                group.cancelAll()
                if let part { last = part }
            }
            return answer(last)
        }
    }

    /// Adds messages until they are complete, or the stream ends.
    private func collect(
        _ first: CaughtMatches,
        _ arrivals: AsyncStream<Void>,
        _ names: CredentialNames
    ) async -> CaughtMatches {
        var found = first
        // One may have come before the stream began.
        found.add(catcher.messages(after: found.last)) { entry($0, names) }
        var iterator = arrivals.makeAsyncIterator()
        while !found.isComplete, await iterator.next() != nil {
            found.add(catcher.messages(after: found.last)) { entry($0, names) }
        }
        return found
    }

    private func answer(_ found: CaughtMatches) -> CaughtAnswer {
        var answer = CaughtAnswer(catching: catching)
        (answer.items, answer.matches, answer.complete) = (checked(found.items), found.count, found.isComplete)
        return answer
    }

    func removeCaught(_ query: CaughtQuery) async throws -> Int {
        let names = try await CredentialNames(trust)
        return catcher.remove { query.matches(entry($0, names)) }
    }

    private func entry(_ message: CaughtMessage, _ names: CredentialNames) -> CaughtEntry {
        var entry = CaughtEntry(
            id: message.id,
            time: message.time.rfc3339,
            environment: message.environment,
            interface: message.interface.rawValue
        )
        entry.uniqueID = message.uniqueID
        entry.topic = message.topic?.name ?? ""
        entry.device = message.slot.flatMap { registry.device($0.device)?.name } ?? ""
        entry.provider = message.sender.map { names.name(of: $0) }
        (entry.status, entry.reason, entry.explanation) = (message.status, message.reason, message.explanation)
        (entry.retryAfter, entry.answered) = (message.retryAfter, message.answered?.rfc3339)
        entry.headers = message.headers
        entry.payload = String(decoding: message.payload, as: UTF8.self)
        entry.tag = message.tag
        return entry
    }

    /// The entries with the number of findings about their payloads, which only those need that are shown.
    private func checked(_ entries: [CaughtEntry]) -> [CaughtEntry] {
        let now = Double(clock.now().milliseconds) / 1000
        return entries.map { entry in
            var entry = entry
            let type = entry.headers["apns-push-type"].flatMap { PushType(rawValue: $0) } ?? .alert
            entry.findings = PayloadCheck(Array(entry.payload.utf8), pushType: type, now: now).findings.count
            return entry
        }
    }
}

/// The identifiers of credentials, by what a connection knows of them.
private struct CredentialNames {
    private let certificates: [String: String]

    init(_ trust: TrustService) async throws {
        var certificates: [String: String] = [:]
        var after: String?
        repeat {
            let page = try await trust.folder.providers.page(after: after, limit: 1000)
            for credential in page.items { if let serial = credential.serial { certificates[serial] = credential.id } }
            after = page.next
        } while after != nil
        self.certificates = certificates
    }

    /// A certificate of an authority of the operator's own is in no list; then it is the serial number.
    package func name(of sender: CaughtMessage.Sender) -> String {
        switch sender {
        case .key(let id): ConsoleCredential.name(of: id)
        case .certificate(let serial): certificates[serial] ?? serial
        }
    }
}

/// The name of the key with which the console sends.
enum ConsoleCredential {
    static let id = "console"

    /// The name of a key for people: its identifier, unless it is the console's own.
    static func name(of keyID: String) -> String {
        keyID == ProviderKey.consoleID ? id : keyID
    }
}
