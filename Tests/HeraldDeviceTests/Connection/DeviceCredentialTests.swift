import Crypto
import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

@testable import HeraldDevice

@Suite struct DeviceCredentialTests {
    @Test func `the description of an identity is only the device's identifier`() throws {
        let credential = try DeviceCredential(pem: try IdentityFile.pem.get())
        #expect(credential.id == DeviceID("kitchen"))
        #expect("\(credential)" == "kitchen")
    }

    @Test(arguments: ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
    func `a file without certificate is refused`(pem: String) {
        #expect(throws: DeviceError.self) { try DeviceCredential(pem: Array(pem.utf8)) }
    }

    @Test func `the certificate of the key counts, whatever the order of the file`() throws {
        let pem = String(decoding: try IdentityFile.pem.get(), as: UTF8.self)
        let parts = pem.components(separatedBy: "-----BEGIN ").dropFirst().map { "-----BEGIN " + $0 }
        try #require(parts.count == 3)
        for order in [[1, 0, 2], [2, 1, 0], [1, 2, 0]] {
            let text = order.map { parts[$0] }.joined()
            #expect(try DeviceCredential(pem: Array(text.utf8)).id.name == "kitchen")
        }
        let other = try #require(parts.first) + P256.Signing.PrivateKey().pemRepresentation
        let error = #expect(throws: DeviceError.self) { try DeviceCredential(pem: Array(other.utf8)) }
        #expect(
            "\(error.map(String.init(describing:)) ?? "")".contains("its private key belongs to another certificate")
        )
    }

    @Test func `a certificate without its key is refused`() throws {
        let pem = String(decoding: try IdentityFile.pem.get(), as: UTF8.self)
        let certificate = try #require(pem.range(of: "-----END CERTIFICATE-----\n"))
        let error = #expect(throws: DeviceError.self) {
            try DeviceCredential(pem: Array(pem[..<certificate.upperBound].utf8))
        }
        #expect(error?.message.contains("no private key") == true)
    }

    @Test func `a provider's certificate is refused`() async throws {
        let path = NSTemporaryDirectory() + "/herald-test-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        let now = WallTime(seconds: Int64(Date().timeIntervalSince1970))
        let folder = try await TrustFolder.create(at: path, store: { _, _ in MemoryTrustStore() }, now: now)
        let topics = [Topic("com.example.chat")].compactMap { $0 }
        let issued = try await folder.providers.issueCertificate(
            topics: topics,
            team: nil,
            environments: [.production],
            now: now
        )
        let error = #expect(throws: DeviceError.self) { try DeviceCredential(pem: Array(issued.pem.utf8)) }
        #expect(error?.message.contains("is not a device's") == true)
    }

    @Test func `a closed port is reported, and tried again`() async throws {
        struct Enough: Error {}
        let configuration = DeviceConfiguration(
            host: "127.0.0.1",
            port: 1,
            credential: try DeviceCredential(pem: try IdentityFile.pem.get()),
            apps: []
        )
        let client = try DeviceClient(configuration)
        await #expect(throws: Enough.self) {
            try await client.run { event in
                guard case .disconnected(let reason, let pause?) = event else { return }
                #expect(reason == "cannot reach 127.0.0.1:1")
                #expect(pause > .zero)
                throw Enough()
            }
        }
    }
}
