import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWeb
import Logging

/// Broadcast channels, through the service that providers use.
extension ServiceAdministration {
    func channels(of bundle: Topic?, _ page: PageRequest) async throws -> Page<ChannelEntry> {
        let (found, isLast) = assembly.delivery.channels.summaries(of: bundle, after: page.after, limit: page.limit)
        let entries = found.map { ChannelEntry($0) }
        return Page(items: entries, next: isLast ? nil : entries.last?.id)
    }

    func channel(_ id: ChannelID) async throws -> ChannelEntry {
        if let summary = assembly.delivery.channels.summary(of: id) { return ChannelEntry(summary) }
        // Another node may just have made it.
        do {
            try await assembly.storage.engine.shared?.catchUp(.channels)
        } catch {
            throw ChannelOutcome.isUnavailable
        }
        guard let summary = assembly.delivery.channels.summary(of: id) else { throw ChannelOutcome.isUnknown(id) }
        return ChannelEntry(summary)
    }

    func makeChannel(of app: App, storage: MessageStoragePolicy) async throws -> ChannelEntry {
        let bundle = TopicScope.bundle(of: app.topic)
        guard bundle == app.topic else {
            throw AdminError(.badRequest, "topic must be a bundle identifier without a suffix: \(bundle)")
        }
        guard assembly.configuration.gateway.rules.broadcastApps.contains(bundle) else {
            throw AdminError(
                .conflict,
                "this service does not broadcast for \(bundle): see its setting broadcast-apps"
            )
        }
        let id = ChannelID.random()
        let outcome = await ChannelOutcome.wait { completion in
            assembly.delivery.channels.create(id, for: app, storage: storage, completion: completion)
        }
        try ChannelOutcome.check(outcome, of: id, app)
        note("channel made", id, app)
        return try await channel(id)
    }

    func deleteChannel(_ id: ChannelID) async throws -> ChannelEntry {
        let entry = try await channel(id)
        let app = App(topic: entry.topic, environment: entry.environment)
        let outcome = await ChannelOutcome.wait { completion in
            assembly.delivery.channels.delete(id, of: app, completion: completion)
        }
        try ChannelOutcome.check(outcome, of: id, app)
        note("channel deleted", id, app)
        return entry
    }

    private func note(_ what: Logger.Message, _ id: ChannelID, _ app: App) {
        assembly.logger.notice(
            what,
            metadata: [
                "channel": "\(id.base64)", "topic": "\(app.topic)", "environment": "\(app.environment.rawValue)",
            ]
        )
    }
}

/// The end of an operation on a channel, in an operator's words.
enum ChannelOutcome {
    static let isUnavailable = WebRefusal(
        503,
        "the store takes no changes at the moment: `herald status` says why, and what to do"
    )

    static func isUnknown(_ id: ChannelID) -> AdminError {
        AdminError(.notFound, "there is no channel \(id.base64)")
    }

    /// Throws what an operator can do about an operation that was not accepted.
    static func check(_ outcome: CompletionOutcome, of id: ChannelID, _ app: App) throws {
        switch outcome {
        case .accepted: return
        case .refused(.channelNotRegistered, _): throw isUnknown(id)
        case .refused(.cannotCreateChannelConfig, _):
            throw AdminError(
                .conflict,
                """
                no room for a channel: \(app.topic) has as many in \(app.environment.rawValue) as channel-limit permits, or \
                the service has as many channels or app names as it may: delete channels, or raise channel-limit
                """
            )
        case .unknown:
            throw WebRefusal(503, "nobody knows whether it was stored: look at the list before you repeat it")
        case .refused, .decideAgain: throw isUnavailable
        }
    }

    /// Begins an operation, and waits until it is settled.
    static func wait(_ begin: (Completion) -> PostDecision) async -> CompletionOutcome {
        await withCheckedContinuation { continuation in
            let completion = Completion(handler: Waiting(continuation), number: 0)
            switch begin(completion) {
            case .pending: break
            case .accepted: completion.settle(.accepted)
            case .refused(let reason, let since): completion.settle(.refused(reason, since: since))
            }
        }
    }

    private final class Waiting: CompletionHandler {
        private let continuation: CheckedContinuation<CompletionOutcome, Never>

        init(_ continuation: CheckedContinuation<CompletionOutcome, Never>) {
            self.continuation = continuation
        }

        func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
            continuation.resume(returning: outcome)
        }
    }
}
