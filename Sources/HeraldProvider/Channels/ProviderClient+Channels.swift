import Foundation
public import HeraldModel

/// What is asked about channels ("Sending channel management requests to APNs"), and broadcasts.
///
/// At Herald any client may; Apple has doors of its own for the channels (``ProviderConfiguration/appleChannels(_:credential:)``),
/// while broadcasts go where notifications go.
extension ProviderClient {
    /// The longest list of channels that is read, in bytes: twice what 10,000 channels come to.
    static let maximumListBytes = 1 << 20

    /// Sends a message to all devices that subscribed to a channel.
    ///
    /// What is repeated, and when, is ``ProviderConfiguration/retry``'s to say, as for ``send(_:)``.
    /// - Parameter broadcast: The message.
    /// - Returns: The service's answer; its identifier is that of the request (`apns-request-id`).
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func send(_ broadcast: BroadcastRequest) async throws -> PushAnswer {
        try Self.check(broadcast.payload, limit: BroadcastChannel.maximumPayloadBytes)
        return try await ask(
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
        }
        .answer
    }

    /// Makes a channel.
    ///
    /// An answer that is lost may leave a channel that nobody knows: ``channels(of:)`` lists it.
    /// - Parameters:
    ///   - app: The app's bundle identifier, without any suffix.
    ///   - storage: What it keeps of its messages.
    /// - Returns: The channel, or why there is none.
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func createChannel(
        of app: Topic,
        storage: ProviderChannel.Storage
    ) async throws -> ChannelAnswer<ProviderChannel> {
        let body = Array(#"{"message-storage-policy":\#(storage.rawValue),"push-type":"LiveActivity"}"#.utf8)
        let (answer, raw) = try await ask("POST", "/1/apps/\(app.name)/channels", body)
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let id = raw.channelID else { throw Self.strange }
        return .done(ProviderChannel(id: id, storage: storage))
    }

    /// Reads what a channel keeps.
    /// - Parameters:
    ///   - id: The channel's identifier.
    ///   - app: The app's bundle identifier, without any suffix.
    /// - Returns: The channel, or why it cannot be read.
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func channel(_ id: String, of app: Topic) async throws -> ChannelAnswer<ProviderChannel> {
        let (answer, raw) = try await ask("GET", "/1/apps/\(app.name)/channels") { $0.add("apns-channel-id", id) }
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let body = try? JSONDecoder().decode(ChannelBody.self, from: Data(raw.body)),
            let storage = ProviderChannel.Storage(rawValue: body.policy)
        else { throw Self.strange }
        return .done(ProviderChannel(id: id, storage: storage))
    }

    /// Deletes a channel; messages on their way to it still arrive.
    /// - Parameters:
    ///   - id: The channel's identifier.
    ///   - app: The app's bundle identifier, without any suffix.
    /// - Returns: The identifier, or why it was not deleted.
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func deleteChannel(_ id: String, of app: Topic) async throws -> ChannelAnswer<String> {
        let (answer, _) = try await ask("DELETE", "/1/apps/\(app.name)/channels") { $0.add("apns-channel-id", id) }
        if case .refused(let refusal) = answer { return .refused(refusal) }
        return .done(id)
    }

    /// Lists the identifiers of an app's channels, the oldest first at Herald.
    /// - Parameter app: The app's bundle identifier, without any suffix.
    /// - Returns: The identifiers, or why they are not told.
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func channels(of app: Topic) async throws -> ChannelAnswer<[String]> {
        let (answer, raw) = try await ask(
            "GET",
            "/1/apps/\(app.name)/all-channels",
            answerLimit: Self.maximumListBytes
        )
        if case .refused(let refusal) = answer { return .refused(refusal) }
        guard let body = try? JSONDecoder().decode(ChannelList.self, from: Data(raw.body)) else { throw Self.strange }
        return .done(body.channels)
    }

    private static let strange = ProviderError(
        .badAnswer,
        "the answer is no push service's: it lacks what was asked for"
    )

    private func ask(
        _ method: String,
        _ path: String,
        _ body: [UInt8] = [],
        id: NotificationID? = nil,
        isNotification: Bool = false,
        answerLimit: Int = PushAnswer.maximumBodyBytes,
        _ addFields: (inout HeaderBlock) -> Void = { _ in }
    ) async throws -> (answer: PushAnswer, raw: Call.Answer) {
        let id = id ?? .random()
        var head = head(method, path: path)
        head.add("apns-request-id", id.canonicalBytes, isIndexed: false)
        addFields(&head)
        return try await settle(
            Order(
                id: id,
                head: head,
                body: body,
                answerLimit: answerLimit,
                identifier: "apns-request-id",
                isNotification: isNotification
            )
        )
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
