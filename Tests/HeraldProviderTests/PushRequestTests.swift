import Crypto
import HeraldModel
import NIOCore
import Testing

@testable import HeraldProvider

@Suite struct PushRequestTests {
    private func request() -> PushRequest {
        PushRequest(
            token: PushToken(DeviceToken(words: (1, 2, 3, 4))),
            topic: Topic("com.example.app"),
            payload: []
        )
    }

    private static let id = NotificationID(high: 1, low: 2)

    private func lines(_ request: PushRequest) -> [String] {
        var head = RequestHeader()
        request.write(to: &head, id: request.id ?? Self.id)
        return head.fields.map { field in
            "\(field.name): \(String(decoding: head.values[field.start..<field.start + field.count], as: UTF8.self))"
        }
    }

    @Test func `a plain request has type, topic and an identifier`() {
        #expect(
            lines(request()) == [
                "apns-push-type: alert", "apns-topic: com.example.app",
                "apns-id: 00000000-0000-0001-0000-000000000002",
            ]
        )
    }

    @Test func `what is set is sent`() throws {
        var request = request()
        request.priority = .low
        request.expiration = .at(WallTime(seconds: 1_700_000_000))
        request.collapseID = "dinner"
        request.id = Self.id
        #expect(
            lines(request) == [
                "apns-push-type: alert", "apns-topic: com.example.app",
                "apns-id: 00000000-0000-0001-0000-000000000002",
                "apns-priority: 1", "apns-expiration: 1700000000", "apns-collapse-id: dinner",
            ]
        )
    }

    @Test func `no storage and nothing said are two things`() throws {
        var request = request()
        request.expiration = .once
        #expect(lines(request).contains("apns-expiration: 0"))
    }

    @Test func `the description of a credential contains no key material`() {
        let secret = Array("secret".utf8)
        let key = ProviderCredential.key(pem: secret, id: "ABCDE12345", team: "TEAM123456")
        #expect("\(key)" == "key ABCDE12345 of team TEAM123456")
        #expect("\(ProviderCredential.certificate(pem: secret))" == "certificate")
    }

    @Test(arguments: ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
    func `an invalid key is refused before anything is sent`(pem: String) {
        let credential = ProviderCredential.key(pem: Array(pem.utf8), id: "ABCDE12345", team: "TEAM123456")
        let error = #expect(throws: ProviderError.self) {
            try ProviderClient(ProviderConfiguration(host: "localhost", port: 1, credential: credential))
        }
        #expect(error?.code == .badCredential)
    }

    @Test(arguments: ["", "no certificate"])
    func `an invalid certificate is refused before anything is sent`(pem: String) {
        let credential = ProviderCredential.certificate(pem: Array(pem.utf8))
        let error = #expect(throws: ProviderError.self) {
            try ProviderClient(ProviderConfiguration(host: "localhost", port: 1, credential: credential))
        }
        #expect(error?.code == .badCredential)
    }

    @Test func `a closed port is reported as such`() async throws {
        let pem = Array(P256.Signing.PrivateKey().pemRepresentation.utf8)
        let credential = ProviderCredential.key(pem: pem, id: "ABCDE12345", team: "TEAM123456")
        var configuration = ProviderConfiguration(host: "127.0.0.1", port: 1, credential: credential)
        configuration.retry = .never
        var request = request()
        request.payload = Array("{}".utf8)
        let push = request
        let error = await #expect(throws: ProviderError.self) {
            try await withProviderClient(configuration) { try await $0.send(push) }
        }
        #expect(error?.code == .unreachable)
    }
}
