import Foundation
public import HeraldModel

/// Channel management ("Sending channel management requests to APNs") and broadcasts.
///
/// Apple has separate hosts for channel management (``ProviderConfiguration/appleChannels(_:credential:)``); broadcasts go
/// to the hosts for notifications. Herald has one listener for all.
extension ProviderClient {
    /// Maximum length of a channel list, in bytes: twice the size of 10,000 channels.
    static let maximumListBytes = 1 << 20

    /// Sends a message to all subscribers of a channel.
    ///
    /// ``ProviderConfiguration/retry`` decides what is sent again, as for notifications.
    /// - Returns: The service's answer, with the `apns-request-id`.
    /// - Throws: ``ProviderError`` if there is no answer; `CancellationError`.
    public func send(_ broadcast: BroadcastRequest) async throws -> PushAnswer {
        try Self.check(broadcast.payload, limit: BroadcastChannel.maximumPayloadBytes)
        return try await request(
            "POST",
            "/4/broadcasts/apps/\(broadcast.app.name)",
            broadcast.payload,
            id: broadcast.id,
            isNotification: true
        ) {
            $0.add("apns-channel-id", broadcast.channel)
            $0.add("apns-push-type", PushType.liveactivity.rawValue)
            $0.add("apns-priority", String(broadcast.priority.rawValue))
            if let expiration = broadcast.expiration.field { $0.add("apns-expiration", expiration) }
            if let tag = broadcast.tag { $0.add("herald-tag", tag, isIndexed: false) }
        }
        .answer
    }

    /// Creates a channel.
    ///
    /// If the answer is lost, the channel may exist: ``channels(of:)`` lists it.
    /// - Parameters:
    ///   - app: The app's bundle identifier, without a suffix.
    ///   - storage: Message storage policy.
    /// - Returns: The channel, or the refusal.
    /// - Throws: ``ProviderError`` if there is no answer; `CancellationError`.
    public func createChannel(
        of app: Topic,
        storage: ProviderChannel.Storage
    ) async throws -> ChannelAnswer<ProviderChannel> {
        let body = Array(#"{"message-storage-policy":\#(storage.rawValue),"push-type":"LiveActivity"}"#.utf8)
        let (answer, raw) = try await request("POST", "/1/apps/\(app.name)/channels", body)
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let id = raw.channelID else { throw Self.incompleteAnswer }
        return .done(ProviderChannel(id: id, storage: storage))
    }

    /// Reads a channel of an app, whose bundle identifier is without a suffix.
    /// - Returns: The channel, or the refusal.
    /// - Throws: ``ProviderError`` if there is no answer; `CancellationError`.
    public func channel(_ id: String, of app: Topic) async throws -> ChannelAnswer<ProviderChannel> {
        let (answer, raw) = try await request("GET", "/1/apps/\(app.name)/channels") { $0.add("apns-channel-id", id) }
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let body = try? JSONDecoder().decode(ChannelBody.self, from: Data(raw.body)),
            let storage = ProviderChannel.Storage(rawValue: body.policy)
        else { throw Self.incompleteAnswer }
        return .done(ProviderChannel(id: id, storage: storage))
    }

    /// Deletes a channel of an app, whose bundle identifier is without a suffix; messages in flight still arrive.
    /// - Returns: The identifier, or the refusal.
    /// - Throws: ``ProviderError`` if there is no answer; `CancellationError`.
    public func deleteChannel(_ id: String, of app: Topic) async throws -> ChannelAnswer<String> {
        let (answer, _) = try await request("DELETE", "/1/apps/\(app.name)/channels") { $0.add("apns-channel-id", id) }
        if case .refused(let refusal) = answer { return .refused(refusal) }
        return .done(id)
    }

    /// Lists the identifiers of an app's channels; Herald lists the oldest first.
    /// - Parameter app: The app's bundle identifier, without a suffix.
    /// - Returns: The identifiers, or the refusal.
    /// - Throws: ``ProviderError`` if there is no answer; `CancellationError`.
    public func channels(of app: Topic) async throws -> ChannelAnswer<[String]> {
        let (answer, raw) = try await request(
            "GET",
            "/1/apps/\(app.name)/all-channels",
            answerLimit: Self.maximumListBytes
        )
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let body = try? JSONDecoder().decode(ChannelList.self, from: Data(raw.body)) else {
            throw Self.incompleteAnswer
        }
        return .done(body.channels)
    }

    private static let incompleteAnswer = ProviderError(
        .badAnswer,
        "the answer is not from a push service: it lacks the requested content"
    )

    private func request(
        _ method: String,
        _ path: String,
        _ body: [UInt8] = [],
        id: NotificationID? = nil,
        isNotification: Bool = false,
        answerLimit: Int = PushAnswer.maximumBodyBytes,
        addFields: (inout RequestHeader) -> Void = { _ in }
    ) async throws -> (answer: PushAnswer, raw: Call.Answer) {
        let id = id ?? newIdentifier()
        var head = head(method, path: path)
        head.add("apns-request-id", isIndexed: false) { $0 += id.canonicalBytes }
        addFields(&head)
        let content = RequestContent(
            id: id,
            head: head,
            body: body,
            answerLimit: answerLimit,
            identifier: "apns-request-id",
            isNotification: isNotification
        )
        let execution = try execution(content)
        return (try await finish(execution, from: .again(after: .zero)).get(), execution.answer)
    }
}

private struct ChannelBody: Decodable {
    let policy: Int

    private enum CodingKeys: String, CodingKey {
        case policy = "message-storage-policy"
    }
}

private struct ChannelList: Decodable {
    let channels: [String]
}
