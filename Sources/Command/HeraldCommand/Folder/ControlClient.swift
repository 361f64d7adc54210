import AsyncHTTPClient
import Foundation
import HTTPTypes
import HeraldConsole
import HeraldJSON
import HeraldModel
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
    /// - Throws: ``CommandError/Code/noService`` if none runs.
    static func ofService(in folder: DataFolder) throws -> ControlClient {
        if case .taken = try FolderLock.attempt(folder) {
            throw CommandError(
                .noService,
                "no service runs on \(folder.path): start one with `herald serve`, or name its folder with --data"
            )
        }
        return ControlClient(folder: folder)
    }

    /// Makes a request without a body.
    /// - Throws: ``CommandError/Code/noService`` if nobody listens on the socket, ``CommandError/Code/unreachable`` without an
    ///   answer, ``CommandError/Code/refused`` with the service's message if it refuses.
    func ask<Answer: Decodable>(
        _ operation: AdminOperation<NoContent, Answer>,
        _ values: [ParameterValue] = []
    ) async throws -> Answer {
        let row = operation.row
        let (data, _) = try await exchange(row.method, row.uri(values), body: nil)
        return try (NoContent() as? Answer) ?? ControlClient.decode(Answer.self, data)
    }

    /// Makes a request with a body.
    /// - Throws: As ``ask(_:_:)``.
    func ask<Body: Encodable, Answer: Decodable>(
        _ operation: AdminOperation<Body, Answer>,
        body: Body
    ) async throws -> Answer {
        let row = operation.row
        let body = try JSON.encode(body)
        return try ControlClient.decode(
            Answer.self,
            try await exchange(row.method, row.uri([]), body: body).data
        )
    }

    /// Makes a request for something that may not be there.
    /// - Returns: nil if there is nothing (404).
    /// - Throws: As ``ask(_:_:)``.
    func find<Answer: Decodable>(
        _ operation: AdminOperation<NoContent, Answer>,
        _ values: [ParameterValue]
    ) async throws -> Answer? {
        let row = operation.row
        let (data, _) = try await exchange(row.method, row.uri(values), body: nil, accepting: [.notFound])
        if (try? JSON.decode(WebFailure.self, from: data)) != nil { return nil }
        return try ControlClient.decode(Answer.self, data)
    }

    /// Asks for the next part of a list, as long as it may be.
    ///
    /// `key` is the `next` of the part before; nil for the first one.
    /// - Throws: As ``ask(_:_:)``.
    func page<Item: Codable & Sendable>(
        _ operation: AdminOperation<NoContent, Page<Item>>,
        after key: String?,
        _ values: [ParameterValue] = []
    ) async throws -> Page<Item> {
        let all = values + [Ask.limit(PageRequest.limits.upperBound)] + (key.map { [Ask.after($0)] } ?? [])
        let (data, _) = try await exchange(operation.row.method, operation.row.uri(all), body: nil)
        return try ControlClient.decode(Page<Item>.self, data)
    }

    /// Asks for the health of the service, good or bad.
    /// - Throws: As ``ask(_:_:)``.
    func health() async throws -> HealthReport {
        let (data, _) = try await exchange(.get, "/health", body: nil, accepting: [.serviceUnavailable])
        return try ControlClient.decode(HealthReport.self, data)
    }

    /// Asks for lines of the journal, of all nodes of a cluster.
    /// - Returns: The lines, and the nodes that did not answer.
    /// - Throws: As ``ask(_:_:)``.
    func journal(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        let subject =
            switch question {
            case .notification(let id): AdminAPI.journalID(id)
            case .device(let id): AdminAPI.journalDevice(id.name)
            case .topic(let topic): AdminAPI.journalTopic(topic)
            }
        let row = AdminAPI.journal.row
        let (data, headers) = try await exchange(
            row.method,
            row.uri([subject, AdminAPI.journalLimit(limit)]),
            body: nil
        )
        return JournalAnswer(
            try ControlClient.decode([JournalEntry].self, data),
            completeSince: headers.first(name: JournalAnswer.completeSinceField),
            missingNodes: headers[canonicalForm: JournalAnswer.missingNodesField].map(String.init)
        )
    }

    private func exchange(
        _ method: HTTPRequest.Method,
        _ path: String,
        body: [UInt8]?,
        accepting failures: [HTTPResponseStatus] = []
    ) async throws -> (data: [UInt8], headers: HTTPHeaders) {
        guard let url = URL(httpURLWithSocketPath: folder.controlSocketPath, uri: path) else {
            throw CommandError(.unreachable, "\(folder.controlSocketPath) cannot be the name of a socket")
        }
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = HTTPMethod(rawValue: method.rawValue)
        if let body {
            request.headers.add(name: "content-type", value: "application/json")
            request.body = .bytes(body)
        }
        let status: HTTPResponseStatus
        let headers: HTTPHeaders
        let answer: ByteBuffer
        do {
            (status, headers, answer) = try await ControlClient.execute(request)
        } catch let error as IOError where [ECONNREFUSED, ENOENT].contains(error.errnoCode) {
            // A killed service leaves its socket behind; another command holds the folder, or a service that starts.
            throw CommandError(
                .noService,
                "no service listens at \(folder.controlSocketPath): it is starting, or was killed; see `herald status`"
            )
        } catch {
            throw CommandError(
                .unreachable,
                "the service on \(folder.path) does not answer at \(folder.controlSocketPath): check whether it runs"
            )
        }
        let data = Array(answer.readableBytesView)
        guard (200..<300).contains(status.code) || failures.contains(status) else {
            let failure = try? JSON.decode(WebFailure.self, from: data)
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

    private static func decode<Answer: Decodable>(_ type: Answer.Type, _ data: [UInt8]) throws -> Answer {
        do {
            return try JSON.decode(type, from: data)
        } catch {
            throw CommandError(.refused, "the service's answer cannot be read: does it run this version of Herald?")
        }
    }
}
