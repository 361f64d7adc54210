import Foundation
import HeraldModel
import HeraldProvider
import Testing

/// The examples of docs/client.md: compiled here, and compared with the page.
@Suite struct DocumentationTests {
    @Test func `the page has these examples, word for word`() throws {
        func text(_ path: String) throws -> String {
            let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        }
        func lines(_ text: some StringProtocol) -> String {
            text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n")
        }
        let source = lines(try text("Tests/HeraldProviderTests/DocumentationTests.swift"))
        let blocks = try text("docs/client.md").components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
        #expect(blocks.count == 7)
        // The first is for a manifest.
        for block in blocks.dropFirst() {
            #expect(source.contains(lines(block)), "not compiled: \(block)")
        }
    }

    private func sending(keyFile: [UInt8], authority: [UInt8], token: PushToken, topic: Topic) async throws {
        let credential = ProviderCredential.key(pem: keyFile, id: "ABCDE12345", team: "TEAM123456")
        var configuration = ProviderConfiguration(host: "push.example.com", port: 2197, credential: credential)
        configuration.authorities = authority  // ca.pem of the service; without it, the system's
        try await withProviderClient(configuration) { client in
            var request = try PushRequest(token: token, topic: topic, payload: Payload("Dinner is ready"))
            request.collapseID = "dinner"
            switch try await client.send(request) {
            case .accepted(let receipt): print("accepted as", receipt.id)
            case .refused(let refusal) where refusal.reason.known == .unregistered:
                print("forget the token, unless it was registered since", refusal.since as Any)
            case .refused(let refusal): print("refused:", refusal.reason)
            }
        }
    }

    private func sendingMany(_ client: ProviderClient, _ requests: [PushRequest]) async {
        await client.send(requests) { place, outcome in
            switch outcome {
            case .success(.accepted): break
            case .success(.refused(let refusal)): print(requests[place].token, "refused:", refusal.reason)
            case .failure(let error): print(requests[place].token, "no answer:", error)
            }
        }
    }

    private func payloads(token: PushToken, topic: Topic) throws -> PushRequest {
        struct Dish: Encodable {
            var table: Int
        }
        var payload = Payload(alert: Alert(title: "Kitchen", body: .localized(key: "READY", arguments: ["Soup"])))
        payload.sound = .named("bell.caf")
        payload.badge = 1
        payload.interruptionLevel = .timeSensitive
        let bytes = try payload.encoded(for: .alert, custom: Dish(table: 4))
        let request = PushRequest(token: token, topic: topic, payload: bytes)
        return request
    }

    private func resolving(
        _ configuration: inout ProviderConfiguration,
        journal: @escaping @Sendable (NotificationID) async -> Bool?
    ) {
        configuration.resolver = { id in
            switch await journal(id) {  // your code: GET /v1/journal of Herald's admin API, say
            case .some(true): .accepted
            case .some(false): .neverArrived
            case .none: .unknown
            }
        }
    }

    private func broadcasting(_ client: ProviderClient, app: Topic, now: WallTime) async throws {
        guard case .done(let channel) = try await client.createChannel(of: app, storage: .newest) else { return }
        let state = try LiveActivity(.update, contentState: ["home": 1, "away": 0], timestamp: now)
        var payload = Payload()
        payload.liveActivity = state
        var broadcast = try BroadcastRequest(app: app, channel: channel.id, payload: payload)
        broadcast.expiration = .at(now + .seconds(3600))
        _ = try await client.send(broadcast)
    }

    private func sendingBinary(
        pem: [UInt8],
        authority: [UInt8],
        token: PushToken,
        payload: [UInt8],
        now: WallTime
    ) async throws {
        var configuration = BinaryClientConfiguration(host: "push.example.com", port: 2195, certificate: pem)
        configuration.authorities = authority
        try await withBinaryClient(configuration) { client in
            var request = BinaryRequest(token: token, payload: payload)
            request.expiration = .at(now + .seconds(3600))
            switch try await client.send(request) {
            case .accepted: print("accepted")
            case .refused(let refusal): print("refused:", refusal.status, refusal.reason)
            case .uncertain(let error): print("the service may or may not have it:", error)
            }
        }
    }

    @Test func `the examples' payload is what the page says`() throws {
        let topic = try #require(Topic("com.example.app"))
        let token = try #require(PushToken(bytes: [UInt8](repeating: 7, count: 32)))
        let request = try payloads(token: token, topic: topic)
        #expect(String(decoding: request.payload, as: UTF8.self).hasSuffix(#""table":4}"#))
        #expect(request.pushType == .alert)
    }
}
