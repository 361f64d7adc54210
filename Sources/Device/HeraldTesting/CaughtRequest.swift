public import Foundation
import HeraldDevice
import HeraldModel
import NIOCore
import NIOHTTP1

/// A provider's request that the service caught, whether it has accepted it or not.
public struct CaughtRequest: Hashable, Sendable, Decodable {
    /// The status of the answer; at the binary interface that of the error response, 0 for none; nil without an answer.
    public let status: Int?
    /// The reason of a refusal, like `BadDeviceToken`.
    public let reason: String?
    /// The answer in words.
    public let explanation: String?
    /// The identifier in the answer (`apns-id`).
    public let id: String?
    /// The topic; empty if it is unknown.
    public let topic: String
    /// The identifier of the device; empty if the token is of none, and for a broadcast.
    public let device: String
    /// The fields of the header, without `authorization`.
    public let headers: [String: String]
    /// The payload as it was sent.
    public let payload: String
    /// The field `herald-tag`, or `herald.tag` of the payload.
    public let tag: String?
    /// The arrival, by the service's clock.
    public let time: Date
    /// The time of the answer, also of one that a drill delays; nil without an answer.
    public let answered: Date?
    /// `retry-after` of the answer, in seconds.
    public let retryAfter: Int?

    private enum CodingKeys: String, CodingKey {
        case status, reason, explanation, id, topic, device, headers, payload, tag, time, answered
        case retryAfter = "retry_after"
    }
}

extension CaughtRequest: CustomStringConvertible {
    /// The topic and the answer, on one line.
    public var description: String {
        let answer = status.map { "\($0) \(reason ?? "")" } ?? "no answer"
        let words = explanation.map { " (\($0))" } ?? ""
        return "\(topic.isEmpty ? "no topic" : topic): \(answer)\(words)"
    }
}

extension HeraldService {
    /// The most requests that the service keeps: the newest.
    public static let keptRequests = 1000

    /// The result of a query.
    struct Finding: Decodable {
        /// Newest first.
        let items: [CaughtRequest]
        let matches: Int
        /// Whether they are what was waited for.
        let complete: Bool
    }

    /// The requests that providers have sent and a query finds, newest first, like `caught("tag:login-test -status:200")`.
    ///
    /// It waits until `count` have come, and one of them matches `until`, too, like `until: "status:200"`.
    /// A test that others run beside gives its requests a tag of its own: the field `herald-tag`, or
    /// `{"herald":{"tag":"login-test"}}` in the payload.
    /// - Parameters:
    ///   - query: Terms that must all hold, with the keys id, tag, topic, device, provider, status and reason.
    ///   - count: How many to wait for, 1 to 1,000.
    ///   - until: Further terms that one of them must match; nil for any.
    ///   - wait: How long to wait for them, up to 60 s; zero takes what there is.
    ///   - limit: The most to return, 1 to 1,000.
    /// - Returns: At least `count` if it waits.
    /// - Throws: ``HeraldTestError``, also if they did not come in time; it lists those that came.
    public func caught(
        _ query: String = "",
        count: Int = 1,
        until: String? = nil,
        wait: Duration = .seconds(10),
        limit: Int = keptRequests
    ) async throws -> [CaughtRequest] {
        let found = try await find(query, count: count, until: until, wait: wait, limit: limit)
        guard found.complete || wait == .zero else {
            let few = count == 1 ? "no request was" : "\(found.matches) of \(count) requests were"
            let last = until.map { " and until \($0)" } ?? ""
            throw HeraldTestError(
                "\(few) caught within \(wait) for \(query.isEmpty ? "any query" : query)\(last)\(Self.list(found.items))"
            )
        }
        return found.items
    }

    /// Waits for exactly this number of requests: a further one soon after is an error, since none may be sent twice.
    /// - Parameters:
    ///   - count: How many, 0 to 999.
    ///   - query: As for ``caught(_:count:until:wait:limit:)``.
    ///   - wait: How long to wait for them, up to 60 s.
    ///   - quiet: How long no further one may come after that.
    /// - Returns: The requests, newest first.
    /// - Throws: ``HeraldTestError`` if there are fewer or more; it lists them.
    @discardableResult
    public func caughtExactly(
        _ count: Int,
        _ query: String = "",
        wait: Duration = .seconds(10),
        quiet: Duration = .milliseconds(500)
    ) async throws -> [CaughtRequest] {
        if count > 0 { _ = try await caught(query, count: count, wait: wait) }
        let found = try await find(query, count: count + 1, until: nil, wait: quiet, limit: count + 1)
        guard found.matches == count else {
            let words =
                "\(found.matches) requests were caught for \(query.isEmpty ? "any query" : query), and \(count) are right"
            throw HeraldTestError(words + Self.list(found.items))
        }
        return found.items
    }

    /// Waits, up to 60 s, and fails if a request has come or comes meanwhile that the query finds.
    /// - Throws: ``HeraldTestError`` with the requests.
    public func caughtNothing(_ query: String = "", within time: Duration = .seconds(1)) async throws {
        try await caughtExactly(0, query, quiet: time)
    }

    /// Forgets the requests that a query finds.
    /// - Parameter query: As for ``caught(_:count:until:wait:limit:)``.
    /// - Returns: Their number.
    /// - Throws: ``HeraldTestError``.
    @discardableResult
    public func clearCaught(_ query: String = "") async throws -> Int {
        struct Answer: Decodable {
            let deleted: Int
        }
        let answer: Answer = try await askInbox(.DELETE, query, [:])
        return answer.deleted
    }

    func find(_ query: String, count: Int, until: String?, wait: Duration, limit: Int) async throws -> Finding {
        let seconds = min(60, max(0, Double(wait.components.seconds) + Double(wait.components.attoseconds) / 1e18))
        var parameters = ["count": "\(count)", "limit": "\(limit)", "wait": "\(seconds)"]
        parameters["until"] = until
        return try await askInbox(.GET, query, parameters)
    }

    private static func list(_ items: [CaughtRequest]) -> String {
        items.prefix(10).map { "\n  \($0)" }.joined()
    }

    private func askInbox<Answer: Decodable>(
        _ method: HTTPMethod,
        _ query: String,
        _ parameters: [String: String]
    ) async throws -> Answer {
        var address = URLComponents()
        address.path = "/v1/caught"
        address.queryItems =
            [URLQueryItem(name: "q", value: query)] + parameters.map { URLQueryItem(name: $0.key, value: $0.value) }
        // A plus in a query is a space.
        address.percentEncodedQuery = address.percentEncodedQuery?.replacingOccurrences(of: "+", with: "%2B")
        let path = data + "/run/admin.token"
        guard let uri = address.string, let token = FileManager.default.contents(atPath: path) else {
            throw HeraldTestError("cannot read \(path)")
        }
        let secret = String(decoding: token, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let console = HTTPExchange(
            HostPort(host: "127.0.0.1", port: consolePort),
            tls: nil,
            timeout: .seconds(120),
            maximumBytes: 128 << 20
        )
        let answer = try await console.send(method, uri, headers: ["authorization": "Bearer \(secret)"])
        let body = Data(answer.body.readableBytesView)
        guard answer.head.status == .ok else {
            let failure = try? JSONDecoder().decode([String: String].self, from: body)
            throw HeraldTestError(failure?["error"] ?? "the console answered \(answer.head.status.code)")
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let time = WallTime(rfc3339: try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time")
            }
            return Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        }
        return try decoder.decode(Answer.self, from: body)
    }
}
