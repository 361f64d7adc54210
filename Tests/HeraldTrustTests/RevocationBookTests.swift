import Foundation
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import Testing
import X509

struct RevocationBookTests {
    private let trust: TestTrust
    private var path: String { trust.path + "/trust/device.crl" }

    init() throws {
        trust = try TestTrust(clock: ManualClock(WallTime(seconds: 1_772_366_400)))
    }

    private func serial(_ hex: String) -> Certificate.SerialNumber {
        .init(bytes: Hex.bytes(hex) ?? [])
    }

    @Test func `nobody is revoked at first`() throws {
        let book = trust.folder.revocationBook()
        #expect(book.status(serial("01"), of: .device, now: trust.now) == .unknown, "before it is read")
        #expect(book.reload().changed == [.provider, .device])
        #expect(book.status(serial("01"), of: .device, now: trust.now) == .good)
        #expect(book.reload().changed == [])
    }

    @Test func `a revocation is seen by the next reload, and kept apart by kind`() throws {
        let book = trust.folder.revocationBook()
        _ = book.reload()
        let device = try trust.device().device
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        #expect(book.reload().changed == [.device])
        #expect(book.status(serial(device.serial), of: .device, now: trust.now) == .revoked(since: trust.now))
        #expect(book.status(serial(device.serial), of: .provider, now: trust.now) == .good)
    }

    @Test func `an older list never takes a newer one's place`() throws {
        let book = trust.folder.revocationBook()
        let older = try Data(contentsOf: URL(fileURLWithPath: path))
        let device = try trust.device().device
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        _ = book.reload()
        try older.write(to: URL(fileURLWithPath: path))
        let reloaded = book.reload()
        #expect(reloaded.changed == [])
        #expect(reloaded.failures == [TrustError(.untrustedList, "")])
        #expect(book.isRevoked(serial: device.serial, of: .device))
        #expect(book.reload().failures == [], "it is reported once")
    }

    @Test(arguments: ["", "garbage", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
    func `a list that cannot be read leaves the one in force`(text: String) throws {
        let book = trust.folder.revocationBook()
        let device = try trust.device().device
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        _ = book.reload()
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        #expect(book.reload().failures == [TrustError(.untrustedList, "")])
        #expect(book.isRevoked(serial: device.serial, of: .device))
        unlink(path)
        #expect(book.reload().changed == [])
        #expect(book.isRevoked(serial: device.serial, of: .device))
    }

    @Test func `a list whose successor is overdue says nothing, unless the setting grants it time`() throws {
        let strict = trust.folder.revocationBook()
        let lenient = trust.folder.revocationBook(policy: RevocationPolicy(grace: .seconds(86_400)))
        _ = (strict.reload(), lenient.reload())
        let end = trust.folder.deviceAuthority.expires
        #expect(strict.status(serial("01"), of: .device, now: end) == .good)
        #expect(strict.status(serial("01"), of: .device, now: end + .seconds(1)) == .unknown)
        #expect(lenient.status(serial("01"), of: .device, now: end + .seconds(86_400)) == .good)
        #expect(lenient.status(serial("01"), of: .device, now: end + .seconds(86_401)) == .unknown)
    }

    @Test func `where there is no list nobody is let in, unless the setting says so`() throws {
        unlink(path)
        let strict = trust.folder.revocationBook()
        let lenient = trust.folder.revocationBook(policy: RevocationPolicy(mayBeMissing: true))
        _ = (strict.reload(), lenient.reload())
        #expect(strict.status(serial("01"), of: .device, now: trust.now) == .unknown)
        #expect(lenient.status(serial("01"), of: .device, now: trust.now) == .good)
    }

    @Test func `a list in DER is read too`() throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let body = text.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        try #require(Data(base64Encoded: body)).write(to: URL(fileURLWithPath: path))
        #expect(trust.folder.revocationBook().reload().failures == [])
    }

    @Test func `a list that is lost is made anew from the ledger, with a greater number`() throws {
        let device = try trust.device().device
        try trust.folder.revokeDevice(device.id.name, now: trust.now)
        let book = trust.folder.revocationBook()
        _ = book.reload()
        unlink(path)
        trust.clock.advance(by: .seconds(10))
        _ = try TrustFolder.create(at: trust.path, now: trust.now)
        let reloaded = book.reload()
        #expect(reloaded.changed == [.device])
        #expect(reloaded.failures == [])
        #expect(book.isRevoked(serial: device.serial, of: .device))
    }
}
