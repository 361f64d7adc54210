import HeraldJSON
import HeraldModel
package import Hummingbird
import NIOCore
import NIOHTTP1

/// Reads request bodies.
package enum WebBody {
    /// The body, with at most `limit` bytes.
    /// - Throws: ``WebRefusal``: 413; 400 for a body that does not come to its end.
    package static func bytes(of request: Request, limit: Int) async throws -> [UInt8] {
        do {
            return Array(try await request.body.collect(upTo: limit).readableBytesView)
        } catch is NIOTooManyBytesError {
            throw WebRefusal(413, "the body is longer than \(limit) bytes")
        } catch let error where error is HTTPParserError || error is ChannelError || error is IOError {
            throw WebRefusal(400, "the body is not a whole body of HTTP/1.1")
        }
    }

    /// The value of a body.
    /// - Throws: ``WebRefusal``: 400 with the key that is unknown, missing, mistyped or out of range.
    package static func json<Value: Decodable>(_ bytes: [UInt8], as type: Value.Type) throws -> Value {
        do {
            return try JSON(bytes).decodeWhole(type)
        } catch let refusal as WebRefusal {
            throw refusal
        } catch let failure as JSON.Failure {
            throw WebRefusal(400, "the body cannot be read: \(failure)")
        } catch let error as JSON.UnknownKey {
            let keys = error.isComplete ? "the keys are \(error.known.joined(separator: ", "))" : "see /openapi.yaml"
            let words = LikelyKey.words(error.name, in: error.known) ?? keys
            throw WebRefusal(400, "unknown key `\(String(error.path.unicodeScalars.prefix(64)))`: \(words)")
        } catch DecodingError.keyNotFound(let key, _) {
            throw WebRefusal(400, "`\(key.stringValue)` is missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            let key = context.codingPath.first?.stringValue ?? "the body"
            throw WebRefusal(400, "`\(key)` has the wrong type: see /openapi.yaml")
        } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
            throw WebRefusal(400, "`\(context.codingPath[0].stringValue)` is out of range: see /openapi.yaml")
        } catch {
            throw WebRefusal(400, "the body is not valid JSON for this request: see /openapi.yaml")
        }
    }
}
