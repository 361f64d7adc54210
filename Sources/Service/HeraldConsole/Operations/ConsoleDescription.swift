import HeraldWeb
import Hummingbird
import Synchronization

/// The answer of `/openapi.yaml`.
///
/// Anybody may ask, and making the description takes many times as long as any other answer, so it is made once.
final class ConsoleDescription: Sendable {
    private let rows: [OperationRow]
    private let made = Mutex<[UInt8]?>(nil)

    init(of rows: [OperationRow]) {
        self.rows = rows
    }

    /// - Throws: As ``OpenAPI/yaml(of:)``.
    func answer() throws -> Response {
        let bytes = try made.withLock { made in
            let bytes = try made ?? Array(OpenAPI.yaml(of: rows).utf8)
            made = bytes
            return bytes
        }
        return WebReply.bytes(bytes, type: "application/yaml")
    }
}
