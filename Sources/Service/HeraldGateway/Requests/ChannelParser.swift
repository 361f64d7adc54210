import Foundation
import HeraldJSON
import HeraldModel

/// Parses the fields and bodies of requests about channels; pure.
enum ChannelParser {
    /// The only push type of broadcasts; compared without case, because Apple's pages spell it in three ways.
    private static let pushType = "liveactivity"

    static func checkRequestID(_ fields: RequestFields) -> Refusal? {
        guard fields.has(.apnsRequestID) else { return nil }
        let id = fields.withValue(of: .apnsRequestID) { NotificationID(utf8: $0) } ?? nil
        return id == nil ? Refusal(.badMessageID, "apns-request-id is a UUID in the form 8-4-4-4-12") : nil
    }

    /// The channel identifier of a request; nil inside if this service never issued it.
    static func channelID(_ fields: RequestFields, inPath: String?) -> Result<ChannelID?, Refusal> {
        let reading =
            inPath.map { ChannelID.read(($0.removingPercentEncoding ?? $0).utf8) }
            ?? fields.withValue(of: .apnsChannelID) { value in
                fields.isMalformed(.apnsChannelID) ? .malformed : ChannelID.read(value)
            }
        switch reading {
        case nil: return .failure(Refusal(.missingChannelID, "apns-channel-id is required"))
        case .malformed: return .failure(Refusal(.badChannelID, "apns-channel-id is base64 of at most 64 characters"))
        case .unknown: return .success(nil)
        case .channel(let id): return .success(id)
        }
    }

    static func checkPushType(_ fields: RequestFields) -> Refusal? {
        guard let type = fields.withValue(of: .apnsPushType, { String(decoding: $0, as: UTF8.self) }) else {
            return Refusal(.missingPushType, "apns-push-type is required: liveactivity")
        }
        return type.lowercased() == pushType
            ? nil : Refusal(.invalidPushType, "the only apns-push-type of a broadcast is liveactivity")
    }

    static func expiration(_ fields: RequestFields) -> Result<Expiration, Refusal> {
        guard let expiration = fields.withValue(of: .apnsExpiration, { Expiration(utf8: $0) }) ?? nil else {
            return .failure(Refusal(.badExpirationDate, "apns-expiration is required: \(Expiration.rule)"))
        }
        return .success(expiration)
    }

    static func priority(_ fields: RequestFields) -> Result<Priority, Refusal> {
        let text = fields.withValue(of: .apnsPriority) { String(decoding: $0, as: UTF8.self) }
        let priority = Priority.allCases.first { String($0.rawValue) == text }
        return priority.map { .success($0) }
            ?? .failure(Refusal(.badPriority, "apns-priority is required: 10, 5 or 1"))
    }

    static func checkPayload(byteCount: Int, isObject: Bool) -> Refusal? {
        guard byteCount > 0 else { return Refusal(.payloadEmpty, "the request has no body") }
        guard byteCount <= BroadcastChannel.maximumPayloadBytes else {
            return Refusal(.payloadTooLarge, "a broadcast has at most 5,120 bytes")
        }
        return isObject ? nil : .unreadable
    }

    // MARK: - Creation of a channel

    private static let storageName = "message-storage-policy"
    private static let pushTypeName = "push-type"

    /// Parses the body of a request that creates a channel.
    static func storage(_ body: [UInt8], byteCount: Int) -> Result<MessageStoragePolicy, Refusal> {
        guard byteCount > 0 else {
            return .failure(Refusal(.payloadEmpty, "the request has no body; write \(example)"))
        }
        guard byteCount <= body.count, let attributes = JSON.Object(body) else {
            return .failure(
                Refusal(.badRequestPayload, "the body is not a JSON object with each attribute once; write \(example)")
            )
        }
        guard Set(attributes.names) == [storageName, pushTypeName] else {
            return .failure(
                Refusal(.badRequestParams, "the attributes are \(storageName) and \(pushTypeName); write \(example)")
            )
        }
        let number = attributes[storageName]?.number?.exactly(UInt8.self)
        guard let policy = number.flatMap({ MessageStoragePolicy(rawValue: $0) }),
            attributes[pushTypeName]?.text?.lowercased() == pushType
        else {
            return .failure(
                Refusal(.badRequestParams, "\(storageName) is 0 or 1, and \(pushTypeName) is LiveActivity")
            )
        }
        return .success(policy)
    }

    private static let example = "{\"message-storage-policy\":1,\"push-type\":\"LiveActivity\"}"

    /// The JSON of a channel, in the spelling of Apple's pages.
    static func description(of channel: BroadcastChannel) -> [UInt8] {
        Array("{\"\(storageName)\":\(channel.storage.rawValue),\"\(pushTypeName)\":\"LiveActivity\"}".utf8)
    }
}
