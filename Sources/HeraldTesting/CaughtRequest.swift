import AsyncHTTPClient
import Foundation
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
}

extension HeraldService {
    /// The requests that providers have sent and a query finds, newest first, like `caught("tag:login-test -status:200")`.
    ///
    /// A test that others run beside gives its requests a tag of its own: the field `herald-tag`, or
    /// `{"herald":{"tag":"login-test"}}` in the payload.
    /// - Parameters:
    ///   - query: Terms that must all hold, with the keys id, tag, topic, device, provider, status and reason.
    ///   - wait: How long to wait for the first, up to 60 s.
    /// - Returns: At most 1,000; never none if it waits.
    /// - Throws: ``HeraldTestError``, also if none came in time.
    public func caught(_ query: String = "", wait: Duration = .seconds(10)) async throws -> [CaughtRequest] {
        struct Answer: Decodable {
            let items: [CaughtRequest]
        }
        let seconds = min(60, max(0, Double(wait.components.seconds) + Double(wait.components.attoseconds) / 1e18))
        let answer: Answer = try await askInbox(.GET, query, [URLQueryItem(name: "wait", value: "\(seconds)")])
        guard !answer.items.isEmpty || seconds == 0 else {
            throw HeraldTestError("no request was caught within \(wait) for \(query.isEmpty ? "any query" : query)")
        }
        return answer.items
    }

    /// Forgets the requests that a query finds.
    /// - Parameter query: As for ``caught(_:wait:)``.
    /// - Returns: Their number.
    /// - Throws: ``HeraldTestError``.
    @discardableResult
    public func clearCaught(_ query: String = "") async throws -> Int {
        struct Answer: Decodable {
            let deleted: Int
        }
        let answer: Answer = try await askInbox(.DELETE, query, [])
        return answer.deleted
    }

    private func askInbox<Answer: Decodable>(
        _ method: HTTPMethod,
        _ query: String,
        _ items: [URLQueryItem]
    ) async throws -> Answer {
        var address = URLComponents()
        (address.scheme, address.host, address.port, address.path) = ("http", "127.0.0.1", consolePort, "/v1/caught")
        address.queryItems = [URLQueryItem(name: "q", value: query)] + items
        // A plus in a query is a space.
        address.percentEncodedQuery = address.percentEncodedQuery?.replacingOccurrences(of: "+", with: "%2B")
        let path = data + "/run/admin.token"
        guard let url = address.string, let token = FileManager.default.contents(atPath: path) else {
            throw HeraldTestError("cannot read \(path)")
        }
        var request = HTTPClientRequest(url: url)
        request.method = method
        let secret = String(decoding: token, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        request.headers.add(name: "authorization", value: "Bearer \(secret)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(120))
        let body = try await Data(response.body.collect(upTo: 128 << 20).readableBytesView)
        guard response.status == .ok else {
            let failure = try? JSONDecoder().decode([String: String].self, from: body)
            throw HeraldTestError(failure?["error"] ?? "the console answered \(response.status.code)")
        }
        return try JSONDecoder().decode(Answer.self, from: body)
    }
}
