import Foundation
import HeraldModel
import Testing

@testable import HeraldTrust

/// Facts that nodes share, and how they are merged.
struct SharedFactTests {
    private let now = WallTime(seconds: 1_900_000_000)

    private func device(_ serials: String..., revoked: Int64? = nil) throws -> SharedDevice {
        let id = try #require(DeviceID("d1"))
        let certificates = serials.map { EnrolledDevice.Certificate(serial: $0, expires: now + .seconds(60)) }
        var device = EnrolledDevice(id: id, name: "lamp", certificate: certificates[0], created: now)
        for certificate in certificates.dropFirst() { device.renew(with: certificate) }
        var fact = SharedDevice(device)
        fact.revoked = revoked
        return fact
    }

    private func invitation(used: String? = nil, withdrawn: Int64? = nil) -> SharedInvitation {
        var fact = SharedInvitation(
            Invitation(id: "i1", name: nil, digest: [1, 2, 3], created: now, expires: now + .seconds(60))
        )
        if let used { (fact.taken, fact.recent) = (1, [SharedInvitation.Use(device: used, at: 5)]) }
        fact.withdrawn = withdrawn
        return fact
    }

    @Test func `a fact is read as it was written, and opens under its key and name alone`() throws {
        let fact = SharedFact.device(try device("a", "b", revoked: 7))
        #expect(SharedFact(encoded: try fact.encoded()) == fact)
        #expect(SharedFact(encoded: Array("{}".utf8)) == nil)
        let key = ClusterKey()
        let copy = try #require(ClusterKey(file: key.file))
        #expect(copy.recordKey == key.recordKey && copy.fingerprint == key.fingerprint)
        #expect(ClusterKey().recordKey != key.recordKey)
        #expect(ClusterKey(file: Array("short\n".utf8)) == nil && ClusterKey().fingerprint != key.fingerprint)
    }

    @Test func `revoked, used and withdrawn win, whichever side has them`() throws {
        let merged = SharedFact.device(try device("a", "b", "c", revoked: 7))
        for (log, own) in [
            (try device("a", "b"), try device("c", revoked: 7)), (try device("c", revoked: 7), try device("b", "a")),
        ] {
            #expect(SharedFact.merge(log: .device(log), own: .device(own)) == merged)
        }
        let used = SharedFact.invitation(invitation(used: "x", withdrawn: 3))
        #expect(.merge(log: .invitation(invitation(used: "x")), own: .invitation(invitation(withdrawn: 3))) == used)
        #expect(.merge(log: .invitation(invitation(withdrawn: 3)), own: .invitation(invitation(used: "x"))) == used)
        let first = SharedFact.invitation(invitation(used: "x"))
        #expect(.merge(log: first, own: .invitation(invitation(used: "y"))) == first, "the log decides")
    }

    @Test func `the newest sighting wins, and the certificate that was kept or used last`() throws {
        func fact(_ kept: KeptCertificate, seen: WallTime? = nil) throws -> SharedFact {
            let certificate = EnrolledDevice.Certificate(serial: "a", expires: now)
            let id = try #require(DeviceID("d1"))
            var device = EnrolledDevice(id: id, name: nil, certificate: certificate, created: now)
            (device.kept, device.seen) = (kept, seen)
            return .device(SharedDevice(device))
        }
        let (new, used) = (try fact(KeptCertificate([1])), try fact(KeptCertificate(nil, revision: 1), seen: now))
        let again = try fact(KeptCertificate([2], revision: 2), seen: now - .seconds(9))
        let merged = try fact(KeptCertificate([2], revision: 2), seen: now)
        for (one, other, expected) in [(new, used, used), (used, again, merged), (new, again, again)] {
            #expect(.merge(log: one, own: other) == expected)
            #expect(.merge(log: other, own: one) == expected)
        }
    }

    @Test func `a device's own word on announcements wins, then the newest of the operator`() throws {
        func fact(_ announcement: Int64) throws -> SharedFact {
            var device = EnrolledDevice(
                id: try #require(DeviceID("d1")),
                name: nil,
                certificate: EnrolledDevice.Certificate(serial: "a", expires: now),
                created: now
            )
            device.announcement = announcement
            return .device(SharedDevice(device))
        }
        for (one, other, expected) in [(0, -5, -5), (-5, -7, -7), (-7, 3, 3), (3, 5, 5)] as [(Int64, Int64, Int64)] {
            #expect(.merge(log: try fact(one), own: try fact(other)) == (try fact(expected)))
            #expect(.merge(log: try fact(other), own: try fact(one)) == (try fact(expected)))
        }
    }

    @Test func `of a topic's owners the one of the later change counts, and the log decides between equals`() {
        func topic(_ revision: Int64, _ team: String?) -> SharedFact {
            let owner = team.map { SharedTopic.Owner(team: $0, origin: .use, since: 1) }
            return .topic(SharedTopic(topic: "com.example.chat", revision: revision, owner: owner))
        }
        #expect(.merge(log: topic(1, "A"), own: topic(1, "B")) == topic(1, "A"))
        #expect(.merge(log: topic(1, "A"), own: topic(2, nil)) == topic(2, nil))
        #expect(.merge(log: topic(3, "A"), own: topic(2, nil)) == topic(3, "A"))
    }

    // MARK: - Token keys

    private func ring(_ changes: (inout TokenKeyRing) throws -> Void = { _ in }) throws -> TokenKeyRing {
        var ring = TokenKeyRing(now: now)
        try changes(&ring)
        return ring
    }

    @Test func `of two new token keys with one number, the later one in the log gets the next number`() throws {
        let common = try ring()
        var (one, other) = (common, common)
        try one.rotate(now: now)
        try other.rotate(now: now)
        let merged = TokenKeyRing.Document.merge(log: one.document, own: other.document)
        #expect(merged.keys.map(\.id) == [1, 2, 3])
        #expect(merged.keys.map(\.secret) == (one.document.keys + other.document.keys.suffix(1)).map(\.secret))
        // Heard again, in every order, it stays so.
        for own in [one, other, common] {
            #expect(TokenKeyRing.Document.merge(log: merged, own: own.document) == merged)
        }
        #expect(try TokenKeyRing(merged).openKeys.map(\.id) == [3, 2, 1])
    }

    @Test func `a retired token key stays retired`() throws {
        let former = try ring { try $0.rotate(now: now) }
        var retired = former
        try retired.retire(1, now: now)
        for (log, own) in [(former, retired), (retired, former)] {
            #expect(TokenKeyRing.Document.merge(log: log.document, own: own.document) == retired.document)
        }
    }

    @Test func `a token is sealed under a new key when it may, and opens before`() throws {
        var keys = TokenKeyRing(now: now)
        let seal = TokenSeal(keys: keys)
        seal.sealUpTo(1)
        try keys.rotate(now: now)
        seal.replaceKeys(keys)
        let contents = TokenContents(slot: Slot(device: DeviceNumber(1), app: AppNumber(2)), generation: 3)
        let first = seal.seal(contents)
        #expect(seal.newestKey == 1 && seal.newestOpenKey == 2 && seal.keyNumber(of: first) == 1)
        #expect(seal.open(TokenSeal(keys: keys).seal(contents)) == contents)
        seal.sealUpTo(2)
        #expect(seal.keyNumber(of: seal.seal(contents)) == 2 && seal.open(first) == contents)
        // Retired too early: the oldest that is left seals.
        seal.sealUpTo(1)
        try keys.rotate(now: now)
        try keys.retire(1, now: now)
        seal.replaceKeys(keys)
        #expect(seal.newestKey == 2)
    }
}
