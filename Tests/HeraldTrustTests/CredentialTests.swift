import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

struct CredentialTests {
    private let trust: TestTrust

    init() async throws {
        trust = try await TestTrust(clock: ManualClock(WallTime(seconds: 1_772_366_400)))
    }

    private func json(_ value: some Encodable) throws -> NSDictionary {
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
        return try #require(object as? NSDictionary)
    }

    @Test func `the JSON of a credential has every member, if necessary as null`() async throws {
        let certificate = try await trust.provider("com.example.chat", team: "TEAM000001", environments: [.sandbox])
            .credential
        let shown = try json(certificate)
        let keys: Set = ["id", "kind", "serial", "team", "topics", "environments", "created", "expires", "revoked"]
        #expect(Set(shown.allKeys.compactMap { $0 as? String }) == keys)
        #expect(shown["kind"] as? String == "certificate")
        #expect(shown["topics"] as? [String] == ["com.example.chat"])
        #expect(shown["environments"] as? [String] == ["sandbox"])
        #expect(shown["created"] as? String == "2026-03-01T12:00:00.000Z")
        #expect(shown["expires"] as? String == "2027-03-01T12:00:00.000Z")
        #expect(shown["revoked"] is NSNull)
        let serial = try #require(shown["serial"] as? String)
        #expect(serial.utf8.count == 32 && serial == serial.lowercased())
        _ = try await trust.providerKey()
        let key = try json(try #require(try await trust.folder.providers.all().last { $0.kind == .key }))
        #expect(Set(key.allKeys.compactMap { $0 as? String }) == keys)
        #expect(key["kind"] as? String == "key")
        #expect(key["serial"] is NSNull)
        #expect(key["expires"] is NSNull)
        #expect(key["environments"] as? [String] == ["production", "sandbox"])
    }

    @Test func `the JSON of a device has every member`() async throws {
        let device = try await trust.folder.devices.enroll(name: "Küche \"1\"", id: DeviceID("k1"), now: trust.now)
            .record
        trust.clock.advance(by: .seconds(60))
        try await trust.folder.devices.revoke("k1", now: trust.now)
        let shown = try json(try await trust.folder.devices.all()[0])
        let keys: Set = [
            "id", "name", "serial", "created", "expires", "revoked", "labels", "last_seen", "last_address",
        ]
        #expect(Set(shown.allKeys.compactMap { $0 as? String }) == keys)
        #expect(shown["id"] as? String == "k1")
        #expect(shown["name"] as? String == "Küche \"1\"")
        #expect(shown["serial"] as? String == device.serial)
        #expect(shown["revoked"] as? String == "2026-03-01T12:01:00.000Z")
    }
}
