import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// A server that sends what is posted to it: `{"tokens":[…],"payload":{…}}`.
final class HookSender: Sender {
    private let url: String
    private let ledger: Ledger

    init(_ url: String, _ ledger: Ledger) {
        self.url = url
        self.ledger = ledger
    }

    /// The server knows the service already.
    func send(_ pushes: [ExamPush], to _: ExamPlace) {
        let tokens = pushes.map { "\"\($0.token)\"" }.joined(separator: ",")
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.body = .bytes(
            ByteBuffer(string: #"{"tokens":[\#(tokens)],"payload":\#(pushes.first?.payload ?? "{}")}"#)
        )
        let ledger = ledger
        // Its answer may come after the pushes, or before.
        Task { [request] in
            do {
                let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(120))
                if !(200..<300).contains(Int(answer.status.code)) { ledger.noteFailure() }
            } catch {
                ledger.fail(Undriven("POST to \(self.url) failed: \(error)"))
            }
        }
    }

    func close() -> [String] { [] }
}
