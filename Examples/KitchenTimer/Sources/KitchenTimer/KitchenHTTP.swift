import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

/// The body of a response to a refused request.
struct KitchenFailure: Codable {
    let error: String
}

/// The HTTP side of both commands: JSON in, JSON out.
enum KitchenHTTP {
    /// Reads a JSON body.
    /// - Throws: ``KitchenRefusal``.
    static func body<Value: Decodable>(_ type: Value.Type, of request: Request) async throws -> Value {
        let kind = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard kind == "application/json" else {
            throw KitchenRefusal("the body must be application/json", status: .unsupportedMediaType)
        }
        let bytes: ByteBuffer
        do {
            bytes = try await request.body.collect(upTo: KitchenLimits.bodyBytes)
        } catch is NIOTooManyBytesError {
            throw KitchenRefusal("the body is longer than \(KitchenLimits.bodyBytes) bytes", status: .contentTooLarge)
        }
        do {
            return try JSONDecoder().decode(type, from: Data(bytes.readableBytesView))
        } catch {
            throw KitchenRefusal("the body must be JSON with the members that README.md names")
        }
    }

    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        bytes(Array(try JSONEncoder().encode(value)), type: "application/json", status: status)
    }

    static func bytes(_ bytes: [UInt8], type: String, status: HTTPResponse.Status = .ok) -> Response {
        let fields: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            // Only the screens of devices on this machine may frame the page.
            .contentSecurityPolicy: """
            default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
            form-action 'none'; frame-ancestors http://127.0.0.1:* http://localhost:*
            """,
        ]
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// Serves until SIGINT or SIGTERM, or until one of the services ends.
    /// - Throws: ``KitchenRefusal`` if the port is taken, and the errors of the services.
    static func serve(
        _ router: Router<BasicRequestContext>,
        name: String,
        port: Int,
        beside service: some Service
    ) async throws {
        var logger = Logger(label: name) { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        var application = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port), serverName: name),
            onServerRunning: { channel in
                say("\(name) http://127.0.0.1:\(channel.localAddress?.port ?? port)/")
                say("ready")
            },
            logger: logger
        )
        application.addServices(service)
        do {
            try await application.runService()
        } catch let error as IOError {
            let why = String(cString: strerror(error.errnoCode))
            throw KitchenRefusal("cannot listen on 127.0.0.1:\(port): \(why)")
        }
    }
}

/// Converts every failure to a response with a JSON body.
struct KitchenFailures: RouterMiddleware {
    func handle(
        _ request: Request,
        context: BasicRequestContext,
        next: (Request, BasicRequestContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let refusal as KitchenRefusal {
            return try KitchenHTTP.json(KitchenFailure(error: refusal.description), status: refusal.status)
        } catch let error as HTTPError {
            let words = error.status == .notFound ? "there is nothing at this path" : error.status.reasonPhrase
            return try KitchenHTTP.json(KitchenFailure(error: words), status: error.status)
        } catch {
            let words = "it did not work; nothing has changed"
            return try KitchenHTTP.json(KitchenFailure(error: words), status: .internalServerError)
        }
    }
}

/// Runs a task beside the HTTP server, until both are to end.
struct KitchenTask: Service {
    let body: @Sendable () async throws -> Void

    func run() async throws {
        try await cancelWhenGracefulShutdown { try await body() }
    }
}
