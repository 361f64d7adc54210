import AsyncHTTPClient
import Foundation
import HeraldConsole
import HeraldService
import HeraldWeb
import NIOCore
import NIOHTTP1

/// The client of a running service's control socket.
///
/// The folder's mode controls access.
struct ControlClient: Sendable {
    /// How long an answer may take: a revocation waits for the disk, the journal for a search.
    static let timeout = TimeAmount.seconds(30)
    /// The longest answer that is read, in bytes.
    static let maximumAnswerBytes = 64 << 20

    let folder: DataFolder

    /// The client of the service that runs on a folder.
    /// - Throws: ``CommandError/Code/unreachable`` if none runs.
    static func ofService(in folder: DataFolder) throws -> ControlClient {
        if case .taken = try FolderLock.attempt(folder) {
            throw CommandError(
                .unreachable,
                "no service runs on \(folder.path): start one with `herald serve`, or name its folder with --data"
            )
        }
        return ControlClient(folder: folder)
    }

    /// Sends a GET request.
    /// - Throws: ``CommandError/Code/unreachable`` without an answer, ``CommandError/Code/refused`` with the service's
    ///   message if it refuses.
    func get<Answer: Decodable>(
        _ path: String,
        accepting failures: [HTTPResponseStatus] = [],
        as type: Answer.Type = Answer.self
    ) async throws -> Answer {
        try ControlClient.decode(type, try await exchange(.GET, path, body: nil, accepting: failures).data)
    }

    /// Asks for a part of a list.
    /// - Parameters:
    ///   - path: The list, with a query.
    ///   - key: The `next` of the part before; nil for the first one.
    ///   - type: The type of its items.
    /// - Returns: The part.
    /// - Throws: As ``get(_:accepting:as:)``.
    func page<Item: Codable & Sendable>(
        _ path: String,
        after key: String?,
        of type: Item.Type
    ) async throws -> Page<Item> {
        let after = key?.addingPercentEncoding(withAllowedCharacters: .alphanumerics).map { "&after=\($0)" } ?? ""
        return try await get("\(path)&limit=\(PageRequest.limits.upperBound)\(after)", as: Page<Item>.self)
    }

    /// Asks for lines of the journal, of all nodes of a cluster.
    /// - Parameter query: The query of `GET /v1/journal`.
    /// - Returns: The lines, and the nodes that did not answer.
    /// - Throws: As ``get(_:accepting:as:)``.
    func journal(_ query: String) async throws -> JournalAnswer {
        let (data, headers) = try await exchange(.GET, "/v1/journal?\(query)", body: nil)
        return JournalAnswer(
            try ControlClient.decode([JournalEntry].self, data),
            missingNodes: headers[canonicalForm: JournalAnswer.missingNodesField].map(String.init)
        )
    }

    /// Sends a POST request.
    /// - Throws: As ``get(_:accepting:as:)``.
    func post<Answer: Decodable>(
        _ path: String,
        body: some Encodable,
        as type: Answer.Type = Answer.self
    ) async throws -> Answer {
        let body = Array(try JSONEncoder().encode(body))
        return try ControlClient.decode(type, try await exchange(.POST, path, body: body).data)
    }

    /// Sends a POST request without a body.
    /// - Throws: As ``post(_:body:as:)``.
    func post<Answer: Decodable>(_ path: String, as type: Answer.Type) async throws -> Answer {
        try ControlClient.decode(type, try await exchange(.POST, path, body: nil).data)
    }

    /// Sends a POST request without a body, and ignores the answer.
    /// - Throws: As ``post(_:body:as:)``.
    func post(_ path: String) async throws {
        _ = try await exchange(.POST, path, body: nil)
    }

    /// Sends a DELETE request.
    /// - Throws: As ``post(_:body:as:)``.
    func delete(_ path: String) async throws {
        _ = try await exchange(.DELETE, path, body: nil)
    }

    private func exchange(
        _ method: HTTPMethod,
        _ path: String,
        body: [UInt8]?,
        accepting failures: [HTTPResponseStatus] = []
    ) async throws -> (data: Data, headers: HTTPHeaders) {
        guard let url = URL(httpURLWithSocketPath: folder.controlSocketPath, uri: path) else {
            throw CommandError(.unreachable, "\(folder.controlSocketPath) cannot be the name of a socket")
        }
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = method
        if let body {
            request.headers.add(name: "content-type", value: "application/json")
            request.body = .bytes(body)
        }
        let status: HTTPResponseStatus
        let headers: HTTPHeaders
        let answer: ByteBuffer
        do {
            (status, headers, answer) = try await ControlClient.execute(request)
        } catch {
            throw CommandError(
                .unreachable,
                "the service on \(folder.path) does not answer at \(folder.controlSocketPath): check whether it runs"
            )
        }
        let data = Data(answer.readableBytesView)
        guard (200..<300).contains(status.code) || failures.contains(status) else {
            let failure = try? JSONDecoder().decode(WebFailure.self, from: data)
            throw CommandError(.refused, failure?.error ?? "the service answered \(status.code)")
        }
        return (data, headers)
    }

    private static func execute(
        _ request: HTTPClientRequest
    ) async throws -> (HTTPResponseStatus, HTTPHeaders, ByteBuffer) {
        var configuration = HTTPClient.Configuration()
        // Retrying a local socket that nobody listens on is useless.
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let outcome: Result<(HTTPResponseStatus, HTTPHeaders, ByteBuffer), any Error>
        do {
            let response = try await client.execute(request, timeout: timeout)
            let body = try await response.body.collect(upTo: maximumAnswerBytes)
            outcome = .success((response.status, response.headers, body))
        } catch {
            outcome = .failure(error)
        }
        try await client.shutdown()
        return try outcome.get()
    }

    private static func decode<Answer: Decodable>(_ type: Answer.Type, _ data: Data) throws -> Answer {
        do {
            return try JSONDecoder().decode(type, from: data)
        } catch {
            throw CommandError(.refused, "the service's answer cannot be read: does it run this version of Herald?")
        }
    }
}
