import ArgumentParser
import Foundation
import HeraldModel
import HeraldPhone
import HeraldProvider
import HeraldService

/// The request that `herald send` sends; finds wrong usage before anything is sent.
struct SendRequest: Sendable {
    let request: PushRequest

    /// Without a token, that of the options counts.
    init(_ options: SendOptions, to token: PushToken? = nil, now: WallTime) throws {
        guard let token = token ?? options.token.flatMap({ PushToken($0) }) else {
            throw ValidationError("A device token is \(PushToken.rule).")
        }
        guard let name = options.topic else { throw ValidationError("Missing expected argument '--topic <id>'") }
        guard let topic = Topic(name) else {
            throw ValidationError(name, isNot: "a topic, like com.example.app")
        }
        let pushType = try SendRequest.pushType(options.pushType, topic: topic)
        var request = PushRequest(
            token: token,
            topic: topic,
            payload: try SendRequest.payload(options, pushType: pushType),
            pushType: pushType
        )
        request.priority = try SendRequest.priority(options.priority, pushType: pushType)
        request.expiration = try SendRequest.expiration(options.expiration, now: now)
        if let collapseID = options.collapseId {
            guard CollapseID(collapseID) != nil else {
                throw ValidationError("A collapse identifier is \(CollapseID.rule).")
            }
            request.collapseID = collapseID
        }
        self.request = request
    }

    /// The named type, else the one whose suffix the topic has.
    static func pushType(_ text: String?, topic: Topic) throws -> PushType {
        guard let text else {
            return PushType.allCases.first { !$0.topicSuffix.isEmpty && topic.name.hasSuffix($0.topicSuffix) } ?? .alert
        }
        guard let type = PushType(rawValue: text) else {
            let known = PushType.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError(text, isNot: "a push type: one of \(known)")
        }
        return type
    }

    /// UNIX seconds, 0 for one attempt, or a span of time from now: `1h`.
    ///
    /// A bare number is a moment, as in the header; a span needs its unit.
    static func expiration(_ text: String?, now: WallTime) throws -> Expiration {
        guard let text else { return .unspecified }
        if let expiration = Expiration(text) {
            guard case .at(let moment) = expiration, moment - now > .seconds(1000 * 365 * 86_400) else {
                return expiration
            }
            throw ValidationError(
                "'\(LogText.escaped(text, limit: 64))' is more than a thousand years ahead: give seconds, not milliseconds."
            )
        }
        guard let span = DurationText.read(text) else {
            throw ValidationError(text, isNot: "an expiration: \(Expiration.rule), or like 1h")
        }
        return .at(now + span)
    }

    /// 10, 5 or 1; a background push without one gets 5, since 10 is an error there.
    static func priority(_ number: Int?, pushType: PushType) throws -> Priority? {
        guard let number else { return pushType == .background ? .conserving : nil }
        guard let value = UInt8(exactly: number), let priority = Priority(rawValue: value) else {
            throw ValidationError("A priority is 10, 5 or 1.")
        }
        return priority
    }

    private static func payload(_ options: SendOptions, pushType: PushType) throws -> [UInt8] {
        try EmptyText.refuse([("alert", options.alert), ("title", options.title), ("sound", options.sound)])
        let composer = PayloadComposer(
            alert: options.alert,
            title: options.title,
            badge: options.badge,
            sound: options.sound
        )
        let payload: [UInt8]
        if let path = options.payload {
            guard composer.isEmpty else {
                throw ValidationError("Use --payload alone, or --alert, --title, --badge and --sound.")
            }
            payload = TextEncoding.plain(path == "-" ? try standardInput() : try SafeFile.read(path))
        } else {
            guard !composer.isEmpty || pushType == .background else {
                throw ValidationError("Nothing to send: use --alert, --title, --badge, --sound or --payload.")
            }
            payload = composer.payload(for: pushType)
        }
        try check(payload, pushType: pushType)
        return payload
    }

    private static func standardInput() throws -> [UInt8] {
        Array(try FileHandle.standardInput.read(upToCount: SafeFile.maximumBytes) ?? Data())
    }

    /// Refuses a payload that every service refuses.
    static func check(_ payload: [UInt8], pushType: PushType) throws {
        guard payload.count <= pushType.maximumPayloadBytes else {
            throw CommandError(
                .file,
                "the payload has \(payload.count) bytes, and a push of type \(pushType.rawValue) has at most "
                    + "\(pushType.maximumPayloadBytes): shorten it"
            )
        }
        switch PayloadScanner.scan(payload) {
        case .object: return
        case .notAnObject: throw CommandError(.file, "the payload is not a JSON object: put braces around it")
        case .malformed(let position):
            throw CommandError(.file, PayloadCheck.malformation(of: payload, at: position).message)
        }
    }
}
