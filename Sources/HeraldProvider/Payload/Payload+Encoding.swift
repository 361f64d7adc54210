import Foundation
public import HeraldModel

extension Payload {
    /// The payload as compact JSON.
    /// - Parameter pushType: The kind of push it is for, whose limit it must keep.
    /// - Returns: What ``PushRequest/payload`` takes.
    /// - Throws: ``ProviderError/Code/badRequest`` if it is too long, or has a number that JSON cannot say.
    public func encoded(for pushType: PushType) throws -> [UInt8] {
        try checked(try writer().closed(), pushType.maximumPayloadBytes, "a push of type \(pushType.rawValue)")
    }

    /// The payload as compact JSON, with custom data beside `aps`.
    /// - Parameters:
    ///   - pushType: The kind of push it is for, whose limit it must keep.
    ///   - custom: What `JSONEncoder` writes as a JSON object; none of its keys may be `aps`.
    /// - Returns: What ``PushRequest/payload`` takes.
    /// - Throws: ``ProviderError/Code/badRequest`` if it is too long, if `custom` comes to no object or has a key `aps`.
    public func encoded(for pushType: PushType, custom: some Encodable) throws -> [UInt8] {
        let object = try PayloadWriter.object(custom, "the custom data")
        if let keys = try? JSONDecoder().decode(TopKeys.self, from: Data(object)), keys.hasAps {
            throw ProviderError(
                .badRequest,
                "the custom data has a key aps: it stands beside that one, under other names"
            )
        }
        var writer = try writer()
        writer.merge(object)
        return try checked(
            writer.closed(),
            pushType.maximumPayloadBytes,
            "a push of type \(pushType.rawValue)"
        )
    }

    /// The payload of a broadcast, as compact JSON.
    /// - Throws: ``ProviderError/Code/badRequest`` if it has more than 5,120 bytes.
    public func encodedForBroadcast() throws -> [UInt8] {
        try checked(try writer().closed(), BroadcastChannel.maximumPayloadBytes, "a broadcast")
    }

    private func checked(_ bytes: [UInt8], _ limit: Int, _ what: String) throws -> [UInt8] {
        guard bytes.count <= limit else {
            throw ProviderError(
                .badRequest,
                "the payload has \(bytes.count) bytes, and \(what) has at most \(limit): shorten it"
            )
        }
        return bytes
    }

    /// A payload with nothing but `aps`, still open.
    private func writer() throws -> PayloadWriter {
        var writer = PayloadWriter()
        writer.write("aps", json: try aps())
        return writer
    }

    private func aps() throws -> [UInt8] {
        var aps = PayloadWriter()
        switch alert {
        case .none: break
        case .some(let alert):
            if liveActivity != nil {
                // An activity's alert holds its sound, and words as dictionaries.
                aps.write("alert", json: alert.json(ofActivity: true, sound: try sound?.json()))
            } else if let text = alert.plainText {
                aps.write("alert", text)
            } else {
                aps.write("alert", json: alert.json(ofActivity: false, sound: nil))
            }
        }
        aps.write("badge", number: badge.map(Int64.init))
        if liveActivity == nil || alert == nil { aps.write("sound", json: try sound?.json()) }
        aps.write("thread-id", threadID)
        aps.write("category", category)
        aps.write("content-available", flag: isContentAvailable)
        aps.write("mutable-content", flag: isMutable)
        aps.write("target-content-id", targetContentID)
        aps.write("interruption-level", interruptionLevel?.rawValue)
        try aps.write("relevance-score", fraction: relevanceScore)
        aps.write("filter-criteria", filterCriteria)
        if isContentChanged { aps.write("content-changed", json: Array("true".utf8)) }
        aps.write("url-args", texts: urlArguments)
        liveActivity?.write(to: &aps)
        return aps.closed()
    }
}

extension Alert {
    /// The text of an alert that has nothing else: then `alert` is a string.
    fileprivate var plainText: String? {
        guard title == nil, subtitle == nil, launchImage == nil, actionKey == nil, case .literal(let text) = body else {
            return nil
        }
        return text
    }

    fileprivate func json(ofActivity isOfActivity: Bool, sound: [UInt8]?) -> [UInt8] {
        var alert = PayloadWriter()
        func write(_ text: Text?, _ name: String, _ prefix: String) {
            switch text {
            case .none: break
            case .literal(let words): alert.write(name, words)
            case .localized(let key, let arguments) where isOfActivity:
                var text = PayloadWriter()
                text.write("loc-key", key)
                text.write("loc-args", texts: arguments)
                alert.write(name, json: text.closed())
            case .localized(let key, let arguments):
                alert.write("\(prefix)loc-key", key)
                alert.write("\(prefix)loc-args", texts: arguments)
            }
        }
        write(title, "title", "title-")
        write(subtitle, "subtitle", "subtitle-")
        write(body, "body", "")
        alert.write("launch-image", launchImage)
        alert.write("action-loc-key", actionKey)
        alert.write("sound", json: sound)
        return alert.closed()
    }
}

extension Sound {
    fileprivate func json() throws -> [UInt8] {
        switch self {
        case .default: PayloadWriter.text("default")
        case .named(let name): PayloadWriter.text(name)
        case .critical(let name, let volume):
            try {
                var sound = PayloadWriter()
                sound.write("critical", flag: true)
                sound.write("name", name)
                try sound.write("volume", fraction: volume)
                return sound.closed()
            }()
        }
    }
}

extension LiveActivity {
    fileprivate func write(to aps: inout PayloadWriter) {
        aps.write("event", event.rawValue)
        aps.write("timestamp", number: timestamp.seconds)
        aps.write("content-state", json: contentState)
        aps.write("stale-date", number: staleDate?.seconds)
        aps.write("dismissal-date", number: dismissalDate?.seconds)
        aps.write("attributes-type", attributesType)
        aps.write("attributes", json: attributes)
        aps.write("input-push-token", flag: asksForToken)
        aps.write("input-push-channel", channel)
    }
}

/// Whether an object has the key `aps`, whatever its value is.
private struct TopKeys: Decodable {
    let hasAps: Bool

    private enum CodingKeys: String, CodingKey {
        case aps
    }

    init(from decoder: any Decoder) throws {
        hasAps = try decoder.container(keyedBy: CodingKeys.self).contains(.aps)
    }
}
