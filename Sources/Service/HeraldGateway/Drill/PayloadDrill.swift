import HeraldJSON
import HeraldModel

/// A drill that a notification requests in its payload, in the object `herald` beside `aps`, if the service allows it.
///
///     {"aps":{…},"herald":{"drill":{"reason":"Unregistered"}}}
///     {"aps":{…},"herald":{"drill":{"reason":"TooManyRequests","retry-after":30}}}
///     {"aps":{…},"herald":{"drill":{"latency":1.5}}}                    seconds
///     {"aps":{…},"herald":{"drill":{"silence":"lost"}}}                 or "accepted"
///     {"aps":{…},"herald":{"drill":{"connection":"drop"}}}              or "reset", "refuse-stream", "goaway", "shutdown"
///     {"aps":{…},"herald":{"drill":{"reason":"ServiceUnavailable","first":2}}}
///
/// `latency` and `first` combine with each of the others, which exclude each other. The device gets the payload unchanged.
enum PayloadDrill {
    struct Mistake: Error, Equatable {
        let text: String
    }

    private struct Herald: Decodable {
        let drill: Request?
    }

    private struct Request: Decodable {
        enum Silence: String, Decodable {
            case lost
            case accepted
        }

        enum Connection: String, Decodable {
            case drop
            case reset
            case refuseStream = "refuse-stream"
            case goaway
            case shutdown
        }

        enum Key: String, CodingKey, CaseIterable {
            case reason
            case retryAfter = "retry-after"
            case latency
            case silence
            case connection
            case first
        }

        let reason: RefusalReason?
        let retryAfter: JSON?
        let latency: JSON?
        let silence: Silence?
        let connection: Connection?
        let first: JSON?

        init(from decoder: any Decoder) throws {
            let known = Set(Key.allCases.map(\.rawValue))
            guard known.isSuperset(of: try JSON.Object(from: decoder).names) else {
                throw Mistake(
                    text: "the keys of a drill are reason, retry-after, latency, silence, connection and first"
                )
            }
            let container = try decoder.container(keyedBy: Key.self)
            reason = try container.decodeIfPresent(RefusalReason.self, forKey: .reason)
            retryAfter = try container.decodeIfPresent(JSON.self, forKey: .retryAfter)
            latency = try container.decodeIfPresent(JSON.self, forKey: .latency)
            silence = try container.decodeIfPresent(Silence.self, forKey: .silence)
            connection = try container.decodeIfPresent(Connection.self, forKey: .connection)
            first = try container.decodeIfPresent(JSON.self, forKey: .first)
        }
    }

    /// Reads the drill of a payload that is a JSON object.
    /// - Returns: nil if there is none.
    /// - Throws: ``Mistake``; an ignored error would let a test pass that tests nothing.
    static func read(_ payload: [UInt8]) throws(Mistake) -> DrillVerdict? {
        guard let herald = HeraldMember.read(payload), HeraldMember.asksForDrill(herald) else { return nil }
        if let name = HeraldMember.drills(in: herald.members ?? [:]).first(where: { $0 != "drill" }) {
            throw Mistake(text: "herald.\(name) is not a known key: did you mean drill?")
        }
        let request: Request?
        do {
            request = try herald.decode(Herald.self).drill
        } catch let mistake as Mistake {
            throw mistake
        } catch {
            throw Mistake(
                text: "herald.drill is an object like {\"reason\":\"Unregistered\"}, with a known reason"
            )
        }
        return try request.map(verdict)
    }

    private static func verdict(_ request: Request) throws(Mistake) -> DrillVerdict {
        var verdict = DrillVerdict(cause: "the payload's drill")
        if let latency = request.latency {
            guard let seconds = latency.double, seconds >= 0,
                seconds <= Double(DrillLimits.latency.upperBound.components.seconds)
            else {
                throw Mistake(text: "a drill's latency is 0 to 600 seconds")
            }
            verdict.latency = .milliseconds(Int64(seconds * 1000))
        }
        let retryAfter = request.retryAfter?.integer.map { Duration.seconds($0) }
        if request.retryAfter != nil {
            guard let retryAfter, request.reason != nil, DrillLimits.retryAfter.contains(retryAfter)
            else {
                throw Mistake(text: "a drill's retry-after is 1 to 86400 seconds, and goes with a reason")
            }
        }
        guard [request.reason != nil, request.silence != nil, request.connection != nil].count(where: { $0 }) <= 1
        else {
            throw Mistake(text: "a drill has one of reason, silence and connection")
        }
        if let first = request.first {
            guard let first = first.integer, DrillLimits.first.contains(first) else {
                throw Mistake(text: "a drill's first is a number from 1 to \(DrillLimits.first.upperBound)")
            }
            verdict.first = first
        }
        if let reason = request.reason { verdict.outcome = .refuse(reason, retryAfter: retryAfter) }
        if let silence = request.silence { verdict.outcome = .silence(isAccepted: silence == .accepted) }
        switch request.connection {
        case .drop: verdict.outcome = .drop
        case .reset: verdict.outcome = .reset(isAccepted: false)
        case .refuseStream: verdict.outcome = .refuseStream
        case .goaway: verdict.outcome = .goAway(nil)
        case .shutdown: verdict.outcome = .shutdown
        case nil: break
        }
        guard verdict.outcome != nil || verdict.latency != nil else {
            throw Mistake(text: "a drill has a reason, latency, silence or connection")
        }
        return verdict
    }
}
