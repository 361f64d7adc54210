import Foundation
import HeraldModel
import HeraldPhone
import HeraldProvider
import HeraldTesting
import Testing

// The tests of docs/testing.md, word for word.

@Test func `the family hears that dinner is ready`() async throws {
    let herald = try await HeraldService.shared()
    try await herald.withDevice { device in
        let token = try await device.install("com.example.chat")
        try await announceDinner(to: token.hex, host: herald.host, port: herald.apiPort, key: herald.providerKey())
        let shown = try await device.next(for: "com.example.chat")
        #expect(shown.body == "Dinner is ready" && shown.sound == "default")
    }
}

@Test func `a sender copes with too many requests`() async throws {
    try await withHerald { herald in
        try await herald.withDevice { device in
            let token = try await device.install("com.example.chat")
            let key = try await herald.providerKey()
            try await herald.withDrill("refuse", "--reason", "TooManyRequests") {
                let answer = try await announceDinner(to: token.hex, host: herald.host, port: herald.apiPort, key: key)
                #expect(answer == "TooManyRequests")
            }
        }
    }
}

@Test func `a login is announced`() async throws {
    let herald = try await HeraldService.shared()
    try await herald.withDevice { device in
        let token = try await device.install("com.example.chat")
        try await announceLogin(to: token.hex, through: herald, tag: "login-test")
        let sent = try await herald.caught("tag:login-test")
        #expect(sent.first?.status == 200 && sent.first?.payload.contains("Somebody logged in") == true)
    }
}

/// The sender that the page leaves to its reader.
private func announceLogin(to token: String, through herald: HeraldService, tag: String) async throws {
    let key = try await herald.providerKey()
    _ = try await send(Payload("Somebody logged in"), to: token, port: herald.apiPort, key: key, tag: tag)
}

/// The sender that the page leaves to its reader.
@discardableResult
private func announceDinner(to token: String, host: String, port: Int, key: ProviderKey) async throws -> String {
    var payload = Payload("Dinner is ready")
    payload.sound = .default
    return try await send(payload, to: token, port: port, key: key)
}

private func send(
    _ payload: Payload,
    to token: String,
    port: Int,
    key: ProviderKey,
    tag: String? = nil
) async throws -> String {
    var configuration = ProviderConfiguration(
        host: "localhost",
        port: port,
        credential: .key(pem: key.pem, id: key.id, team: key.team)
    )
    configuration.retry = ProviderRetry.never
    configuration.timeout = HeraldServiceTests.patience
    configuration.totalTimeout = HeraldServiceTests.patience
    configuration.connections.pingTimeout = HeraldServiceTests.patience
    // The key lies in the folder of its service, beside the data folder.
    let folder = URL(fileURLWithPath: key.path).deletingLastPathComponent().deletingLastPathComponent()
    configuration.authorities = Array(try Data(contentsOf: folder.appendingPathComponent("data/ca.pem")))
    let topic = try #require(Topic("com.example.chat"))
    var request = try PushRequest(token: try #require(PushToken(token)), topic: topic, payload: payload)
    request.tag = tag
    return try await withProviderClient(configuration) { client in
        switch try await client.send(request) {
        case .accepted: "accepted"
        case .refused(let refusal): refusal.reason.text
        }
    }
}

@Test func `the page about tests has these tests`() throws {
    func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
    let source = try text("Tests/HeraldTestingTests/DocumentationTests.swift")
    let blocks = try text("docs/testing.md").components(separatedBy: "```swift\n").dropFirst()
        .compactMap { $0.components(separatedBy: "```").first }
    // The first is a line of a manifest.
    #expect(blocks.count == 3)
    for block in blocks.dropFirst() { #expect(source.contains(block), "not compiled: \(block)") }
}
