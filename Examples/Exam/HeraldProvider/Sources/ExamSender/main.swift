import Foundation
import HeraldJSON
import HeraldModel
import HeraldProvider

// An adapter of `herald exam` for the library HeraldProvider: one client, which sends all that the exam asks for at once.

/// The first order, `open`; `ca` and `key` are paths.
struct Opening: Decodable, SnakeCased {
    var host, ca, key, keyId, team, topic: String
    var port: Int
}

struct Order: Decodable, Sendable, SnakeCased {
    var id: Int
    var token: String
    var payload: JSON
    var pushType: PushType?, priority: Priority?, expiration: Int64?, collapseId: String?
}

func send(_ order: Order, of topic: String, with client: ProviderClient) async -> JSON.Object {
    guard let token = PushToken(order.token) else { return ["outcome": "failed", "reason": "not a token"] }
    var request = PushRequest(token: token, topic: Topic(topic), payload: order.payload.bytes)
    request.pushType = order.pushType ?? .alert
    request.priority = order.priority
    request.collapseID = order.collapseId
    request.expiration = order.expiration.map { $0 == 0 ? .once : .at(WallTime(seconds: $0)) } ?? .unspecified
    do {
        guard case .refused(let refusal) = try await client.send(request) else { return ["outcome": "accepted"] }
        let status = JSON.number(JSON.Number(refusal.status))
        return ["outcome": "refused", "status": status, "reason": .string(refusal.reason.text)]
    } catch {
        let isInDoubt = (error as? ProviderError)?.mayHaveArrived ?? true
        return ["outcome": isInDoubt ? "unknown" : "failed", "reason": .string("\(error)")]
    }
}

let opening: Opening = try JSON(Array((readLine() ?? "").utf8)).decode()
let key = ProviderCredential.key(
    pem: try Array(Data(contentsOf: URL(filePath: opening.key))),
    id: opening.keyId,
    team: opening.team
)
var configuration = ProviderConfiguration(host: opening.host, port: opening.port, credential: key)
configuration.authorities = try Array(Data(contentsOf: URL(filePath: opening.ca)))
// An exam takes a minute or two, so it waits less than a real sender would.
configuration.timeout = .seconds(5)
configuration.totalTimeout = .seconds(20)
let (orders, input) = AsyncStream.makeStream(of: Order.self)
Thread.detachNewThread {
    // The order `close` has no token.
    while let line = readLine(), let order: Order = try? JSON(Array(line.utf8)).decode() { input.yield(order) }
    input.finish()
}
try await withProviderClient(configuration) { client in
    await withDiscardingTaskGroup { sends in
        for await order in orders {
            sends.addTask {
                var answer = await send(order, of: opening.topic, with: client)
                answer["id"] = .number(JSON.Number(order.id))
                FileHandle.standardOutput.write(Data(JSON.object(answer).bytes + [0x0A]))
            }
        }
    }
}
