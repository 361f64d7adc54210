import AsyncHTTPClient
import Foundation
import HeraldScreen
import Logging
import NIOCore
import NIOHTTP1

/// A screen that listens while a test asks it things.
struct ScreenHarness {
    let device = MadeUpDevice()
    var configuration = {
        var configuration = ScreenConfiguration(port: 0)
        // On a busy machine everything takes longer.
        configuration.requestTimeout = .seconds(240)
        return configuration
    }()

    /// An answer: its status, its fields, and its body as text.
    struct Answer {
        let status: UInt
        let fields: HTTPHeaders
        let body: String
    }

    func withScreen<Result: Sendable>(_ body: @Sendable (_ base: String) async throws -> Result) async throws -> Result
    {
        let (opened, open) = AsyncStream.makeStream(of: Int.self)
        let service = service { open.yield($0) }
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run() }
            for await port in opened {
                let result = try await body("http://127.0.0.1:\(port)")
                group.cancelAll()
                // How the screen ends when it is cancelled is not what is tested.
                while await group.nextResult() != nil {}
                return result
            }
            throw CancellationError()
        }
    }

    func service(_ isOpen: @escaping @Sendable (Int) -> Void) -> ScreenService {
        ScreenService(
            configuration: configuration,
            view: device,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            isOpen: isOpen
        )
    }

    func ask(_ method: String, _ url: String, fields: HTTPHeaders = [:], body: String? = nil) async throws -> Answer {
        let response = try await send(method, url, fields: fields, body: body)
        let bytes = try await response.body.collect(upTo: 1 << 20)
        return Answer(status: response.status.code, fields: response.headers, body: String(buffer: bytes))
    }

    func act(_ base: String, _ body: String, fields: HTTPHeaders = [:]) async throws -> Answer {
        var fields = fields
        if !fields.contains(name: "content-type") { fields.add(name: "content-type", value: "application/json") }
        return try await ask("POST", base + "/api/device", fields: fields, body: body)
    }

    func send(
        _ method: String,
        _ url: String,
        fields: HTTPHeaders = [:],
        body: String? = nil
    ) async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(url: url)
        request.method = .RAW(value: method)
        request.headers = fields
        if let body { request.body = .bytes(ByteBuffer(string: body)) }
        return try await HTTPClient.shared.execute(request, timeout: .minutes(5))
    }
}
