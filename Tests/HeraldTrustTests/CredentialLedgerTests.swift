import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing

struct CredentialLedgerTests {
    private let trust: TestTrust
    private var path: String { trust.path + "/trust/ledger.jsonl" }

    init() throws {
        trust = try TestTrust(clock: ManualClock(WallTime(seconds: 1_772_366_400)))
    }

    private func json(_ value: some Encodable) throws -> NSDictionary {
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(value))
        return try #require(object as? NSDictionary)
    }

    @Test func `a credential is shown with every member, null where there is nothing`() throws {
        let certificate = try trust.provider("com.example.chat", team: "TEAM000001", environments: [.sandbox])
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
        _ = try trust.providerKey()
        let key = try json(try #require(try trust.folder.credentials().last { $0.kind == .key }))
        #expect(Set(key.allKeys.compactMap { $0 as? String }) == keys)
        #expect(key["kind"] as? String == "key")
        #expect(key["serial"] is NSNull)
        #expect(key["expires"] is NSNull)
        #expect(key["environments"] as? [String] == ["production", "sandbox"])
    }

    @Test func `a device is shown with every member`() throws {
        let device = try trust.folder.enrollDevice(name: "Küche \"1\"", id: DeviceID("k1"), now: trust.now).record
        trust.clock.advance(by: .seconds(60))
        try trust.folder.revokeDevice("k1", now: trust.now)
        let shown = try json(try trust.folder.enrolledDevices()[0])
        let keys: Set = ["id", "name", "serial", "created", "expires", "revoked"]
        #expect(Set(shown.allKeys.compactMap { $0 as? String }) == keys)
        #expect(shown["id"] as? String == "k1")
        #expect(shown["name"] as? String == "Küche \"1\"")
        #expect(shown["serial"] as? String == device.serial)
        #expect(shown["revoked"] as? String == "2026-03-01T12:01:00.000Z")
    }

    @Test func `every event is one line`() throws {
        _ = try trust.provider("com.example.chat")
        let key = try trust.providerKey()
        _ = try trust.folder.enrollDevice(name: "a", id: DeviceID("k1"), now: trust.now)
        try trust.folder.revokeCredential(key.id, now: trust.now)
        try trust.folder.revokeDevice("k1", now: trust.now)
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 6, "and one with which it begins")
        for line in lines { #expect(line.hasPrefix("{\"at\":\"2026-03-01T12:00:00.000Z\"")) }
    }

    @Test func `a torn last line is passed over, and cut off before the next is written`() throws {
        _ = try trust.device("k1")
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        _ = try trust.device("k2")
        let both = try Data(contentsOf: URL(fileURLWithPath: path))
        for length in whole.count..<both.count {
            try both.prefix(length).write(to: URL(fileURLWithPath: path))
            chmod(path, 0o600)
            #expect(try trust.folder.enrolledDevices().map(\.id.name) == ["k1"], "\(length) bytes")
        }
        _ = try trust.device("k3")
        #expect(try trust.folder.enrolledDevices().map(\.id.name) == ["k1", "k3"])
    }

    @Test(arguments: [
        "{}", "garbage", "[]", "", #"{"event":"device","id":"k9","at":"2026-03-01T12:00:00Z"}"#,
        #"{"event":"device","id":"k 9","at":"2026-03-01T12:00:00Z","serial":"01","expires":"2026-03-01T12:00:00Z"}"#,
        #"{"event":"feast","id":"k9","at":"2026-03-01T12:00:00Z"}"#,
        #"{"event":"device revoked","id":"k9","at":"yesterday"}"#,
        #"{"event":"provider certificate","id":"A","at":"2026-03-01T12:00:00Z","serial":"xy","topics":[],"environments":[],"expires":"2026-03-01T12:00:00Z"}"#,
    ])
    func `a damaged line is refused with its number`(line: String) throws {
        _ = try trust.device("k1")
        let whole = try String(contentsOfFile: path, encoding: .utf8)
        try TrustFile.write(Array((whole + line + "\n" + whole).utf8), to: path, .secret)
        let error = #expect(throws: TrustError.self) { try trust.folder.enrolledDevices() }
        #expect(error?.code == .damaged)
        #expect(error?.message.contains("line 3 ") == true)
    }
}
