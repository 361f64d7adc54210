import Foundation
package import HTTPTypes
import HeraldJSON
package import Hummingbird
import NIOCore

/// Answers of the listeners for operators and their tools.
package enum WebReply {
    /// JSON with sorted keys, so that answers can be compared.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        try JSON.encode(value)
    }

    package static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        json(bytes: try encode(value), status: status)
    }

    /// ``json(_:status:)`` with further fields of the header.
    package static func json(_ value: some Encodable, fields: [String: String]) throws -> Response {
        var response = try json(value)
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { response.headers[name] = value }
        }
        return response
    }

    package static func json(bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        self.bytes(bytes, type: "application/json", status: status)
    }

    package static func text(_ text: String, type: String) -> Response {
        bytes(Array(text.utf8), type: type)
    }

    /// The answer of `/health/live`.
    package static var live: Response { json(bytes: Array(#"{"status":"live"}"#.utf8)) }

    /// Metrics in the text format of Prometheus.
    package static func metrics(_ exposition: String) -> Response {
        text(exposition, type: "text/plain; version=0.0.4; charset=utf-8")
    }

    package static func bytes(_ bytes: [UInt8], type: String, status: HTTPResponse.Status = .ok) -> Response {
        // The content is for the moment and for one reader.
        let fields: HTTPFields = [.contentType: type, .cacheControl: "no-store"]
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
