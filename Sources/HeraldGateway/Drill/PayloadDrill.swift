import Foundation
import HeraldModel

/// What a notification wants to become of itself: the object `herald` beside `aps`, on a service that allows it.
///
///     {"aps":{…},"herald":{"drill":{"reason":"Unregistered"}}}
///     {"aps":{…},"herald":{"drill":{"reason":"TooManyRequests","retry-after":30}}}
///     {"aps":{…},"herald":{"drill":{"latency":1.5}}}                    seconds
///     {"aps":{…},"herald":{"drill":{"silence":"lost"}}}                 or "accepted"
///     {"aps":{…},"herald":{"drill":{"connection":"drop"}}}              or "goaway", "shutdown"
///
/// `latency` goes with each of the others; of the others there is one. The payload reaches the device as it is.
enum PayloadDrill {
    /// A wish that cannot be read: what is wrong with it.
    struct Mistake: Error, Equatable {
        let text: String
    }

    private struct Payload: Decodable {
        struct Herald: Decodable {
            let drill: Wish?
        }

        let herald: Herald?
    }

    private struct Wish: Decodable {
        enum Silence: String, Decodable {
            case lost
            case accepted
        }

        enum Connection: String, Decodable {
            case drop
            case goaway
            case shutdown
        }

        enum Key: String, CodingKey, CaseIterable {
            case reason
            case retryAfter = "retry-after"
            case latency
            case silence
            case connection
        }

        let reason: Rejection?
        let retryAfter: Int?
        let latency: Double?
        let silence: Silence?
        let connection: Connection?

        private struct AnyKey: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }

            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let known = Set(Key.allCases.map(\.rawValue))
            let all = try decoder.container(keyedBy: AnyKey.self).allKeys
            guard all.allSatisfy({ known.contains($0.stringValue) }) else {
                throw Mistake(text: "the keys of a drill are reason, retry-after, latency, silence and connection")
            }
            let container = try decoder.container(keyedBy: Key.self)
            reason = try container.decodeIfPresent(Rejection.self, forKey: .reason)
            retryAfter = try container.decodeIfPresent(Int.self, forKey: .retryAfter)
            latency = try container.decodeIfPresent(Double.self, forKey: .latency)
            silence = try container.decodeIfPresent(Silence.self, forKey: .silence)
            connection = try container.decodeIfPresent(Connection.self, forKey: .connection)
        }
    }

    private static let mark = Array("\"herald\"".utf8)

    /// Reads the wish of a payload that is a JSON object.
    /// - Returns: nil if it has none.
    /// - Throws: ``Mistake``: a wish that is not understood would make a test pass that tests nothing.
    static func read(_ payload: [UInt8]) throws(Mistake) -> DrillVerdict? {
        guard contains(payload, mark) else { return nil }
        let wish: Wish?
        do {
            wish = try JSONDecoder().decode(Payload.self, from: Data(payload)).herald?.drill
        } catch let mistake as Mistake {
            throw mistake
        } catch {
            throw Mistake(
                text: "herald.drill is an object like {\"reason\":\"Unregistered\"}, with a reason that exists"
            )
        }
        return try wish.map(verdict)
    }

    private static func verdict(_ wish: Wish) throws(Mistake) -> DrillVerdict {
        var verdict = DrillVerdict(origin: "the payload's drill")
        if let seconds = wish.latency {
            guard seconds >= 0, seconds <= Double(DrillLimits.latency.upperBound.components.seconds) else {
                throw Mistake(text: "a drill's latency is 0 to 600 seconds")
            }
            verdict.latency = .milliseconds(Int64(seconds * 1000))
        }
        if let seconds = wish.retryAfter {
            guard wish.reason != nil, DrillLimits.retryAfter.contains(.seconds(seconds)) else {
                throw Mistake(text: "a drill's retry-after is 1 to 86400 seconds, and goes with a reason")
            }
        }
        guard [wish.reason != nil, wish.silence != nil, wish.connection != nil].count(where: { $0 }) <= 1 else {
            throw Mistake(text: "a drill has one of reason, silence and connection")
        }
        if let reason = wish.reason { verdict.outcome = .refuse(reason, retryAfter: wish.retryAfter) }
        if let silence = wish.silence { verdict.outcome = .silence(isAccepted: silence == .accepted) }
        switch wish.connection {
        case .drop: verdict.outcome = .drop
        case .goaway: verdict.outcome = .goAway(nil)
        case .shutdown: verdict.outcome = .shutdown
        case nil: break
        }
        guard verdict.outcome != nil || verdict.latency != nil else {
            throw Mistake(text: "a drill says a reason, a latency, a silence or what becomes of the connection")
        }
        return verdict
    }

    private static func contains(_ bytes: [UInt8], _ wanted: [UInt8]) -> Bool {
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains { bytes[$0...].starts(with: wanted) }
    }
}
