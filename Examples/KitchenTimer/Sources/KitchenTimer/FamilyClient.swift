import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1

/// A device's report to the family's server: everything that the server needs for its notifications, and the timers.
struct FamilyMessage: Codable, Sendable {
    /// The device's identifier.
    var device: String
    /// The device token in hexadecimal digits; nil while there is none.
    var token: String?
    /// The user's languages, in order of preference.
    var languages: [String]
    /// The device's timers.
    var timers: [CountdownTimer]
}

/// The server's answer: the timers of the family.
struct FamilyAnswer: Codable, Sendable {
    var timers: [CountdownTimer]
}

/// The family's server, for the app.
struct FamilyClient: Sendable {
    /// The server's address, without a slash at its end.
    let address: String
    /// The family's secret.
    let code: String
    let client: HTTPClient

    /// Reports the device, and returns the family's timers.
    /// - Throws: ``KitchenRefusal``.
    func synchronize(_ message: FamilyMessage) async throws -> [CountdownTimer] {
        try await ask("sync", message, FamilyAnswer.self).timers
    }

    /// Has the server tell everybody else that dinner is ready.
    /// - Returns: The number of devices that were told.
    /// - Throws: ``KitchenRefusal``.
    func dinner(from device: String) async throws -> Int {
        try await ask("dinner", DinnerCall(device: device), DinnerAnswer.self).told
    }

    private func ask<Answer: Decodable>(
        _ path: String,
        _ message: some Encodable,
        _ type: Answer.Type
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: "\(address)/api/\(path)")
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.headers.add(name: "authorization", value: "Bearer \(code)")
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(message)))
        let status: UInt
        let body: ByteBuffer
        do {
            let answer = try await client.execute(request, timeout: .seconds(KitchenLimits.requestSeconds))
            status = answer.status.code
            body = try await answer.body.collect(upTo: KitchenLimits.bodyBytes)
        } catch {
            throw KitchenRefusal("the family's server at \(address) does not answer", status: .badGateway)
        }
        let bytes = Data(body.readableBytesView)
        guard status == 200, let answer = try? JSONDecoder().decode(type, from: bytes) else {
            let words = (try? JSONDecoder().decode(KitchenFailure.self, from: bytes))?.error ?? "status \(status)"
            throw KitchenRefusal("the family's server refuses: \(words)", status: .badGateway)
        }
        return answer
    }
}

/// The request that tells everybody else that dinner is ready.
struct DinnerCall: Codable, Sendable {
    /// The device that says so, which is not told.
    var device: String
}

/// The answer to a ``DinnerCall``.
struct DinnerAnswer: Codable, Sendable {
    /// The number of devices for which the push service took the notification.
    var told: Int
}
