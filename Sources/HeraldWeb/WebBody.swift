import Foundation
package import Hummingbird
import NIOCore

/// What a request brings.
package enum WebBody {
    /// The body, which has at most `limit` bytes.
    /// - Throws: ``WebRefusal``: 413.
    package static func bytes(of request: Request, limit: Int) async throws -> [UInt8] {
        do {
            return Array(try await request.body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw WebRefusal(413, "the body is longer than \(limit) bytes")
        }
    }

    /// The body as JSON.
    /// - Throws: ``WebRefusal``: 400 in words that name the key which is missing or of another type, or 413.
    package static func json<Value: Decodable>(
        of request: Request,
        as type: Value.Type,
        limit: Int
    ) async throws -> Value {
        let bytes = try await bytes(of: request, limit: limit)
        do {
            return try JSONDecoder().decode(type, from: Data(bytes))
        } catch let refusal as WebRefusal {
            throw refusal
        } catch DecodingError.keyNotFound(let key, _) {
            throw WebRefusal(400, "`\(key.stringValue)` is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            let key = context.codingPath.first?.stringValue ?? "the body"
            throw WebRefusal(400, "`\(key)` is of another type than the description says")
        } catch {
            throw WebRefusal(400, "the body is not the JSON that this request takes")
        }
    }
}
