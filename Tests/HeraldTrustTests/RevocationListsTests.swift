import Foundation
import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing
import X509

struct RevocationListsTests {
    private let trust: TestTrust
    private var path: String { trust.path + "/trust/device.crl" }

    init() async throws {
        trust = try await TestTrust(clock: ManualClock(WallTime(seconds: 1_772_366_400)))
    }

    private func serial(_ hex: String) -> Certificate.SerialNumber {
        .init(bytes: Hex.bytes(hex) ?? [])
    }

    @Test func `at first no peer is revoked`() throws {
        let lists = trust.folder.revocationLists()
        #expect(lists.status(serial("01"), of: .device, now: trust.now) == .unknown, "before it is read")
        #expect(lists.reload().changed == [.provider, .device])
        #expect(lists.status(serial("01"), of: .device, now: trust.now) == .good)
        #expect(lists.reload().changed == [])
    }

    @Test func `the next reload finds a revocation, of one kind of peers only`() async throws {
        let lists = trust.folder.revocationLists()
        _ = lists.reload()
        let device = try await trust.device().device
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        #expect(lists.reload().changed == [.device])
        #expect(lists.status(serial(device.serial), of: .device, now: trust.now) == .revoked(since: trust.now))
        #expect(lists.status(serial(device.serial), of: .provider, now: trust.now) == .good)
    }

    @Test func `an older list never replaces a newer one`() async throws {
        let lists = trust.folder.revocationLists()
        let older = try Data(contentsOf: URL(fileURLWithPath: path))
        let device = try await trust.device().device
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        _ = lists.reload()
        try older.write(to: URL(fileURLWithPath: path))
        let reloaded = lists.reload()
        #expect(reloaded.changed == [])
        #expect(reloaded.failures.all == [TrustError(.untrustedList, "")])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
        let again = lists.reload().failures
        #expect(again.new == [], "it is reported once")
        #expect(again.all == [TrustError(.untrustedList, "")], "the last attempt has failed")
    }

    @Test(arguments: ["", "garbage", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
    func `an unreadable list leaves the present one in effect`(text: String) async throws {
        let lists = trust.folder.revocationLists()
        let device = try await trust.device().device
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        _ = lists.reload()
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        #expect(lists.reload().failures.all == [TrustError(.untrustedList, "")])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
        unlink(path)
        #expect(lists.reload().changed == [])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
    }

    @Test func `an overdue list is invalid after the configured grace`() throws {
        let strict = trust.folder.revocationLists()
        let lenient = trust.folder.revocationLists(policy: RevocationPolicy(grace: .seconds(86_400)))
        _ = (strict.reload(), lenient.reload())
        let end = trust.folder.deviceAuthority.expires
        #expect(strict.status(serial("01"), of: .device, now: end) == .good)
        #expect(strict.status(serial("01"), of: .device, now: end + .seconds(1)) == .unknown)
        #expect(lenient.status(serial("01"), of: .device, now: end + .seconds(86_400)) == .good)
        #expect(lenient.status(serial("01"), of: .device, now: end + .seconds(86_401)) == .unknown)
    }

    @Test func `without a list peers are refused, unless the policy accepts them`() throws {
        unlink(path)
        let strict = trust.folder.revocationLists()
        let lenient = trust.folder.revocationLists(policy: RevocationPolicy(mayBeMissing: true))
        _ = (strict.reload(), lenient.reload())
        #expect(strict.status(serial("01"), of: .device, now: trust.now) == .unknown)
        #expect(lenient.status(serial("01"), of: .device, now: trust.now) == .good)
    }

    @Test func `a list in DER is read as well`() throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let body = text.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        try #require(Data(base64Encoded: body)).write(to: URL(fileURLWithPath: path))
        #expect(trust.folder.revocationLists().reload().failures.all == [])
    }

    @Test func `a lost list is made from the ledger again, with a greater number`() async throws {
        let device = try await trust.device().device
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        let lists = trust.folder.revocationLists()
        _ = lists.reload()
        unlink(path)
        trust.clock.advance(by: .seconds(10))
        _ = try await trust.restart()
        let reloaded = lists.reload()
        #expect(reloaded.changed == [.device])
        #expect(reloaded.failures.all == [])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
    }

    @Test func `a list that cannot be read is read again until it can, and reported once`() async throws {
        let lists = trust.folder.revocationLists()
        _ = lists.reload()
        let device = try await trust.device().device
        try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        chmod(path, 0o664)
        let first = lists.reload()
        #expect(first.changed == [] && first.failures.new == [TrustError(.exposed, "")])
        let second = lists.reload().failures
        #expect(second.new == [] && second.all == [TrustError(.exposed, "")])
        // Changes neither the content nor the time of the last write.
        chmod(path, 0o644)
        let third = lists.reload()
        #expect(third.changed == [.device] && third.failures.all == [])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
    }

    @Test func `a failure in other words is reported again`() async throws {
        let lists = trust.folder.revocationLists()
        _ = lists.reload()
        for mode in [0o664, 0o666] as [mode_t] {
            chmod(path, mode)
            #expect(lists.reload().failures.new.map(\.code) == [.exposed])
        }
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".real")
        #expect(lists.reload().failures.new.map(\.code) == [.unreadable])
    }

    @Test func `a revocation fails if the present list cannot be read, and the next one mends it`() async throws {
        let device = try await trust.device().device
        chmod(path, 0o664)
        let error = await #expect(throws: TrustError.self) {
            try await trust.folder.devices.revoke(device.id.name, now: trust.now)
        }
        #expect(error?.code == .exposed && error?.message.contains("revoked in the ledger") == true)
        chmod(path, 0o644)
        let lists = trust.folder.revocationLists()
        _ = lists.reload()
        #expect(!lists.isRevoked(serial: device.serial, of: .device))
        // The clock was set back: the new list still follows the present one.
        await #expect(throws: TrustError(.alreadyRevoked, "")) {
            try await trust.folder.devices.revoke(device.id.name, now: trust.now - .seconds(86_400))
        }
        #expect(lists.reload().failures.all == [])
        #expect(lists.isRevoked(serial: device.serial, of: .device))
    }
}
