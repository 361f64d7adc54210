import Foundation
import HTTPTypes
import HeraldModel
import Hummingbird
import NIOCore

/// The requests under `/v1`.
struct RelayRoutes: Sendable {
    /// The longest body, in bytes: a thousand tokens and the longest payload.
    static let maximumBodyBytes = 256 << 10

    let store: any RelayStore
    let clock: any WallClock

    func add(to routes: RouterGroup<BasicRequestContext>) {
        routes.put("devices") { request, _ in
            let device = try await RelayRoutes.body(of: request, as: DeviceInput.self).entry(at: clock.now())
            try await store.register(device)
            return RelayReply.json(Array("{}".utf8))
        }
        routes.post("pushes") { request, _ in
            let push = try await RelayRoutes.body(of: request, as: PushInput.self).push()
            let id = try await store.enqueue(push)
            return try RelayReply.json(["id": id], status: .created)
        }
        routes.get("pushes/:id") { _, context in
            guard let id = Int64(try context.parameters.require("id")), id > 0 else {
                throw RelayRequestError(.badRequest, "a push has a number")
            }
            guard let record = try await store.push(id) else {
                throw RelayRequestError(.notFound, "there is no push \(id): it was purged, or never queued")
            }
            return try RelayReply.json(record)
        }
        routes.get("status") { _, _ in try RelayReply.json(await store.progress(at: clock.now())) }
    }

    static func body<Value: Decodable>(of request: Request, as type: Value.Type) async throws -> Value {
        let bytes: [UInt8]
        do {
            let buffer = try await request.body.collect(upTo: maximumBodyBytes)
            bytes = Array(buffer.readableBytesView)
        } catch is NIOTooManyBytesError {
            throw RelayRequestError(.contentTooLarge, "the body is longer than \(maximumBodyBytes) bytes")
        }
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch let error as RelayRequestError {
            throw error
        } catch DecodingError.keyNotFound(let key, _) {
            throw RelayRequestError(.badRequest, "`\(key.stringValue)` is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            let key = context.codingPath.first?.stringValue ?? "the body"
            throw RelayRequestError(.badRequest, "`\(key)` is of another type than the description says")
        } catch {
            throw RelayRequestError(.badRequest, "the body is not the JSON that this request takes")
        }
    }
}
