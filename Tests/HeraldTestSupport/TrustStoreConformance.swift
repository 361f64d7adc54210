import HeraldIdentity
import HeraldModel
package import HeraldTrust
import Testing

/// The rules of every implementation of ``TrustStore``.
package enum TrustStoreConformance {
    /// One rule.
    package struct Rule: Sendable, CustomStringConvertible {
        package let description: String
        /// Gets an empty store.
        package let check: @Sendable (any TrustStore) async throws -> Void
    }

    private static let now = WallTime(seconds: 1_900_000_000)

    private static func id(_ name: String) -> DeviceID {
        guard let id = DeviceID(name) else { preconditionFailure("\(name) is not an identifier") }
        return id
    }

    private static func device(
        _ name: String,
        serial: String = "40",
        expires: Duration = .seconds(3600)
    ) -> EnrolledDevice {
        let certificate = EnrolledDevice.Certificate(serial: serial, expires: now + expires)
        return EnrolledDevice(id: id(name), name: "Küche \"1\"", certificate: certificate, created: now)
    }

    private static func certificate(_ id: String, _ topics: String..., team: String? = "TEAM000001") -> Credential {
        Credential(
            id: id,
            kind: .certificate,
            serial: "50" + id,
            team: team,
            topics: topics.compactMap { Topic($0) },
            environments: [.sandbox, .production],
            created: now,
            expires: now + .seconds(60)
        )
    }

    private static func invitation(_ id: String, digest: [UInt8] = Array(1...32)) -> Invitation {
        Invitation(id: id, name: nil, digest: digest, created: now, expires: now + .seconds(60))
    }

    package static let rules = [
        Rule(description: "what is added is read again, by identifier, in parts", check: keepsWhatIsAdded),
        Rule(description: "an identifier is never used twice", check: refusesTakenIdentifiers),
        Rule(description: "an invitation is used with its device, once, or not at all", check: usesInvitationsOnce),
        Rule(description: "an invitation serves as many devices as it has uses", check: countsUses),
        Rule(
            description: "a certificate is kept until a new device connects, or a further one replaces it",
            check: keepsCertificates
        ),
        Rule(description: "an invitation for a known device adds a certificate, once", check: usesInvitationsForKnown),
        Rule(description: "the use of a revoked device that never connected is free again", check: returnsUses),
        Rule(
            description: "devices are found by labels, by their last connection, and by its lack",
            check: selectsDevices
        ),
        Rule(
            description: "a device was told by hand until more is announced, unless it says itself what it knows",
            check: tellsDevices
        ),
        Rule(description: "devices are found by their name, labels and a condition, in parts", check: findsDevices),
        Rule(description: "open invitations are limited, and closed ones do not count", check: limitsOpenInvitations),
        Rule(description: "an invitation is found by the beginning of its digest", check: findsInvitations),
        Rule(
            description: "a device has a limited number of valid certificates, and none after its revocation",
            check: limitsCertificates
        ),
        Rule(description: "a revocation is permanent, and covers all certificates", check: keepsRevocations),
        Rule(description: "claims are read when they have changed", check: versionsClaims),
        Rule(
            description: "the topics of certificates are read with the claims, until a revocation",
            check: keepsTopicsOfCertificates
        ),
        Rule(
            description: "a topic stays with its team until another takes it over, or it is released",
            check: keepsClaims
        ),
        Rule(description: "a team has a limited number of claims by use", check: limitsClaims),
    ]

    private static func keepsWhatIsAdded(_ store: any TrustStore) async throws {
        let devices = ["b", "a"].map { device($0) }
        for one in devices { #expect(try await store.add(one, invitation: nil)) }
        #expect(try await store.devices() == devices.reversed())
        #expect(try await store.device(devices[1].id) == devices[1])
        let certificates = [
            certificate("B", "com.example.b", "com.example.c"), certificate("A", "com.example.a", team: nil),
        ]
        for one in certificates { #expect(try await store.add(one)) }
        #expect(try await store.certificates() == certificates.reversed())
        #expect(try await store.certificates(after: "A", limit: 1) == [certificates[0]])
        #expect(try await store.certificate("A") == certificates[1])
        let invitations = [invitation("i2"), invitation("i1", digest: [1] + Array(2...32))]
        #expect(try await store.add(invitations, limit: 2, now: now) == .added)
        #expect(try await store.invitations() == invitations.reversed())
        #expect(try await store.invitations(after: "i1", limit: 9) == [invitations[0]])
        #expect(try await store.invitation("i1") == invitations[1])
    }

    private static func refusesTakenIdentifiers(_ store: any TrustStore) async throws {
        #expect(try await store.add(device("a"), invitation: nil))
        #expect(try await store.add(device("a", serial: "41"), invitation: nil) == false)
        #expect(try await store.devices() == [device("a")])
        #expect(try await store.add(certificate("A", "com.example.a")))
        #expect(try await store.add(certificate("A", "com.example.b")) == false)
        #expect(try await store.add([invitation("i")], limit: 9, now: now) == .added)
        #expect(try await store.add([invitation("j"), invitation("i")], limit: 9, now: now) == .identifierTaken)
        #expect(try await store.add([invitation("j"), invitation("j")], limit: 9, now: now) == .identifierTaken)
        #expect(try await store.invitations() == [invitation("i")])
    }

    private static func usesInvitationsOnce(_ store: any TrustStore) async throws {
        #expect(try await store.add(["i", "j", "k"].map { invitation($0) }, limit: 3, now: now) == .added)
        #expect(try await store.add(device("a"), invitation: "i"))
        #expect(try await store.invitation("i")?.used == Invitation.Use(device: id("a"), at: now))
        #expect(try await store.add(device("b"), invitation: "i") == false, "used")
        #expect(try await store.add(device("a"), invitation: "j") == false, "the identifier is taken")
        #expect(try await store.invitation("j")?.used == nil)
        #expect(try await store.withdrawInvitation("k", at: now))
        #expect(try await store.add(device("b"), invitation: "k") == false, "withdrawn")
        #expect(try await store.add(device("b"), invitation: "x") == false, "unknown")
        #expect(try await store.devices().map(\.id.name) == ["a"])
        #expect(try await store.withdrawInvitation("i", at: now) == false)
        #expect(try await store.withdrawInvitation("x", at: now) == false)
        #expect(try await store.withdrawInvitation("k", at: now) == false)
    }

    private static func countsUses(_ store: any TrustStore) async throws {
        let three = Invitation(
            id: "i",
            name: nil,
            digest: Array(1...32),
            created: now,
            expires: now + .seconds(60),
            uses: 3
        )
        #expect(try await store.add([three], limit: 1, now: now) == .added)
        for name in ["a", "b", "c"] {
            #expect(try await store.invitation("i")?.state(at: now) == .open)
            #expect(try await store.add(device(name), invitation: "i"))
        }
        #expect(try await store.add(device("d"), invitation: "i") == false, "used up")
        let used = try #require(try await store.invitation("i"))
        #expect(used.state(at: now) == .used && used.taken == 3)
        #expect(used.recent.map(\.device.name) == ["a", "b", "c"])
        #expect(try await store.withdrawInvitation("i", at: now) == false, "used up")
    }

    private static func keepsCertificates(_ store: any TrustStore) async throws {
        for name in ["a", "b"] {
            var device = device(name)
            (device.kept, device.labels) = (KeptCertificate([1, 2]), DeviceLabels(["room": "hall"]))
            #expect(try await store.add(device, invitation: nil))
            #expect(try await store.device(id(name)) == device)
        }
        try await store.note([DeviceSighting(device: id("a"), at: now, address: "")])
        #expect(try await store.device(id("a"))?.kept == KeptCertificate(nil, revision: 1))
        #expect(try await store.device(id("a"))?.seen == now)
        func renew(_ name: String, _ serial: String, kept: [UInt8]?) async throws {
            let next = EnrolledDevice.Certificate(serial: serial, expires: now)
            #expect(try await store.renew(id(name), with: next, kept: kept, use: nil, limit: 9, now: now))
        }
        try await renew("a", "51", kept: [3])
        // The earlier certificate may still connect.
        try await store.note([DeviceSighting(device: id("a"), at: now + .seconds(86_400), address: "")])
        #expect(try await store.device(id("a"))?.kept == KeptCertificate([3], revision: 2))
        #expect(try await store.device(id("a"))?.seen == now + .seconds(86_400))
        try await renew("a", "52", kept: nil)
        try await renew("b", "53", kept: nil)
        #expect(try await store.device(id("a"))?.kept == KeptCertificate(nil, revision: 3))
        #expect(try await store.device(id("b"))?.kept.certificate == nil)
    }

    private static func usesInvitationsForKnown(_ store: any TrustStore) async throws {
        #expect(try await store.add(device("a"), invitation: nil))
        var invitation = invitation("i")
        (invitation.device, invitation.labels) = (id("a"), [:])
        #expect(try await store.add([invitation], limit: 1, now: now) == .added)
        #expect(try await store.invitation("i") == invitation)
        func renew(_ serial: String, _ invitation: String) async throws -> Bool {
            let next = EnrolledDevice.Certificate(serial: serial, expires: now)
            let use = (invitation, Invitation.Use(device: id("key"), at: now))
            return try await store.renew(id("a"), with: next, kept: [1], use: use, limit: 9, now: now)
        }
        #expect(try await renew("41", "x") == false, "unknown")
        #expect(try await renew("41", "i"))
        #expect(try await renew("42", "i") == false, "used")
        #expect(try await store.device(id("a"))?.certificates.map(\.serial) == ["40", "41"])
        #expect(try await store.invitation("i")?.newestDevice == id("a"))
    }

    private static func returnsUses(_ store: any TrustStore) async throws {
        #expect(try await store.add([invitation("i")], limit: 1, now: now) == .added)
        func add(_ name: String) async throws -> Bool {
            let certificate = EnrolledDevice.Certificate(serial: name, expires: now)
            let device = EnrolledDevice(
                id: id(name),
                name: nil,
                certificate: certificate,
                created: now,
                invitation: "i"
            )
            return try await store.add(device, invitation: "i")
        }
        #expect(try await add("a"))
        #expect(try await store.revokeDevice(id("a"), at: now))
        let free = try await store.invitation("i")
        #expect(free?.state(at: now) == .open && free?.newestDevice == nil)
        #expect(try await add("b"))
        #expect(try await store.invitation("i")?.newestDevice == id("b"))
        #expect(try await add("c") == false, "used up")
        try await store.note([DeviceSighting(device: id("b"), at: now, address: "")])
        #expect(try await store.revokeDevice(id("b"), at: now))
        #expect(try await store.invitation("i")?.state(at: now) == .used, "it has connected")
        #expect(try await store.withdrawInvitation("i", at: now) == false, "used up")
        // Word of a connection that came before the revocation.
        try await store.note([DeviceSighting(device: id("a"), at: now, address: "")])
        #expect(try await store.invitation("i")?.returned == 0)
    }

    private static func selectsDevices(_ store: any TrustStore) async throws {
        for name in ["a", "b", "c", "d"] { #expect(try await store.add(device(name), invitation: nil)) }
        #expect(try await store.changeLabels(of: id("a")) { $0 = ["room": "hall", "floor": "2"] })
        #expect(try await store.changeLabels(of: id("b")) { $0 = ["room": "hall 2"] })
        #expect(try await store.revokeDevice(id("d"), at: now))
        try await store.note([DeviceSighting(device: id("b"), at: now + .seconds(3600), address: "")])
        func names(_ select: (inout DeviceSelection) -> Void) async throws -> [String] {
            var selection = DeviceSelection(limit: 9)
            select(&selection)
            return try await store.devices(selection).items.map(\.id.name)
        }
        func labels(_ texts: String...) async throws -> [String] {
            try await names { $0.labels = texts.compactMap { LabelFilter($0) } }
        }
        #expect(try await labels("room=hall") == ["a"])
        #expect(try await labels("room") == ["a", "b"])
        #expect(try await labels("room", "floor=2") == ["a"])
        #expect(try await labels("oom") == [])
        #expect(try await labels("room=HALL") == [])
        #expect(try await names { $0.isUnused = true } == ["a", "c"])
        #expect(try await names { $0.unseenSince = now } == ["a", "c"])
        #expect(try await names { $0.unseenSince = now + .seconds(3600) } == ["a", "b", "c"])
        #expect(try await names { $0.unseenSince = now - .seconds(1) } == [])
        #expect(try await names { $0.isUnrevoked = true } == ["a", "b", "c"])
    }

    private static func tellsDevices(_ store: any TrustStore) async throws {
        for name in ["a", "b", "c", "d"] { #expect(try await store.add(device(name), invitation: nil)) }
        #expect(try await store.revokeDevice(id("d"), at: now))
        func say(_ name: String, _ version: Int64) async throws {
            var sighting = DeviceSighting(device: id(name), at: now, address: "")
            sighting.announcement = version
            try await store.note([sighting])
        }
        func counts(_ version: Int64) async throws -> [Int] {
            let counts = try await store.announcementCounts(version, now: now)
            return [counts.ready, counts.told, counts.behind, counts.silent]
        }
        func lacking(_ version: Int64) async throws -> [String] {
            var selection = DeviceSelection(limit: 9)
            selection.lacking = version
            return try await store.devices(selection).items.map(\.id.name)
        }
        try await say("b", 5)
        for told in [1, 1] { #expect(try await store.tell(["a", "b", "d", "x"].map(id), of: 7) == told) }
        #expect(try await counts(7) == [0, 1, 1, 1])
        #expect(try await lacking(7) == ["b", "c"])
        #expect(try await counts(8) == [0, 0, 1, 2])
        #expect(try await lacking(8) == ["a", "b", "c"])
        try await say("a", 6)
        #expect(try await counts(7) == [0, 0, 2, 1])
    }

    private static func findsDevices(_ store: any TrustStore) async throws {
        for name in ["d", "b", "a", "c"] { #expect(try await store.add(device(name), invitation: nil)) }
        func names(_ selection: DeviceSelection) async throws -> [String] {
            let page = try await store.devices(selection)
            return page.items.map(\.id.name) + [page.next.map { "after \($0)" }].compactMap(\.self)
        }
        #expect(try await names(DeviceSelection(limit: 2)) == ["a", "b", "after b"])
        #expect(try await names(DeviceSelection(after: "b", limit: 2)) == ["c", "d"])
        #expect(try await store.changeLabels(of: id("c")) { $0 = ["room": "Hall", "floor": "2"] })
        #expect(try await store.changeLabels(of: id("x")) { $0 = ["room": "hall"] } == false, "unknown")
        await #expect(throws: TrustError.self) {
            try await store.changeLabels(of: id("c")) { labels in
                labels["wing"] = "east"
                throw TrustError(.invalidArgument, "too many")
            }
        }
        #expect(try await names(DeviceSelection(limit: 9, text: "ROOM=hall")) == ["c"])
        #expect(try await names(DeviceSelection(limit: 9, text: "che \"1")) == ["a", "b", "c", "d"])
        #expect(try await names(DeviceSelection(limit: 1, condition: { $0.name > "a" })) == ["b", "after b"])
        let seen = DeviceSighting(device: id("a"), at: now, address: "192.0.2.1")
        let foreign = DeviceSighting(device: id("x"), at: now, address: "")
        try await store.note([seen, foreign])
        #expect(try await store.device(id("a"))?.sighting == seen)
        #expect(try await store.device(id("c"))?.labels.all == ["room": "Hall", "floor": "2"])
    }

    private static func limitsOpenInvitations(_ store: any TrustStore) async throws {
        #expect(try await store.add(["i", "j"].map { invitation($0) }, limit: 2, now: now) == .added)
        #expect(try await store.add([invitation("k")], limit: 2, now: now) == .tooMany)
        #expect(try await store.withdrawInvitation("i", at: now))
        #expect(try await store.add([invitation("k")], limit: 2, now: now) == .added)
        #expect(try await store.add([invitation("l")], limit: 2, now: now) == .tooMany)
        #expect(try await store.add([invitation("l")], limit: 2, now: now + .seconds(60)) == .added)
    }

    private static func findsInvitations(_ store: any TrustStore) async throws {
        let digests =
            [Array(repeating: 255, count: 32), Array(0..<32), Array(0..<8) + Array(repeating: 7, count: 24)]
            as [[UInt8]]
        let all = digests.enumerated().map { invitation("i\($0)", digest: $1) }
        #expect(try await store.add(all, limit: 3, now: now) == .added)
        #expect(try await store.invitations(lookupKey: Invitation.lookupKey(digests[0])) == [all[0]])
        #expect(try await store.invitations(lookupKey: Invitation.lookupKey(digests[1])) == Array(all[1...]))
        #expect(try await store.invitations(lookupKey: 12) == [])
    }

    private static func keepsRevocations(_ store: any TrustStore) async throws {
        let (known, other) = (device("a"), device("b", serial: "49"))
        for one in [known, other] { #expect(try await store.add(one, invitation: nil)) }
        let next = EnrolledDevice.Certificate(serial: "41", expires: now)
        #expect(try await store.renew(known.id, with: next, kept: nil, use: nil, limit: 9, now: now))
        #expect(try await store.revokedSerials(of: .device) == [:])
        #expect(try await store.revokedDevices(after: 0) == nil)
        #expect(try await store.revokeDevice(known.id, at: now))
        #expect(try await store.revokeDevice(known.id, at: now + .seconds(1)) == false)
        #expect(try await store.revokeDevice(id("c"), at: now) == false)
        #expect(try await store.revokedSerials(of: .device) == ["40": now, "41": now])
        #expect(try await store.revokedDevices(after: 0) == [known.id])
        #expect(try await store.revokedDevices(after: 1) == nil)
        #expect(try await store.device(known.id)?.revoked == now)
        for id in ["A", "B"] { #expect(try await store.add(certificate(id, "com.example.a"))) }
        #expect(try await store.revokeCertificate("A", at: now))
        #expect(try await store.revokeCertificate("A", at: now) == false)
        #expect(try await store.revokeCertificate("C", at: now) == false)
        #expect(try await store.revokedSerials(of: .provider) == ["50A": now])
    }

    private static func claim(_ name: String, _ team: String, _ origin: TopicClaim.Origin = .use) throws -> TopicClaim {
        TopicClaim(try #require(Topic(name)), team: team, origin: origin, since: now)
    }

    private static func claims(of store: any TrustStore) async throws -> Set<TopicClaim> {
        Set(try #require(try await store.topicClaims(after: nil)).all.values)
    }

    private static func versionsClaims(_ store: any TrustStore) async throws {
        let first = try #require(try await store.topicClaims(after: nil))
        #expect(first.all.isEmpty)
        #expect(try await store.topicClaims(after: first.version) == nil)
        #expect(try await store.add(device("a"), invitation: nil))
        #expect(try await store.revokeDevice(id("a"), at: now))
        #expect(try await store.topicClaims(after: first.version) == nil)
        let both = [try claim("com.example.a", "A"), try claim("com.example.b", "B", .credential)]
        try await store.claim(both, takesOver: false)
        let second = try #require(try await store.topicClaims(after: first.version))
        #expect(second.version > first.version && Set(second.all.values) == Set(both))
        try await store.claim(both, takesOver: false)
        #expect(try await store.topicClaims(after: second.version) == nil)
        #expect(try await store.release([both[0].topic]) == nil)
        let third = try #require(try await store.topicClaims(after: second.version))
        #expect(third.version > second.version && Array(third.all.values) == [both[1]])
    }

    private static func keepsTopicsOfCertificates(_ store: any TrustStore) async throws {
        let first = try #require(try await store.topicClaims(after: nil))
        #expect(first.certificateTopics.isEmpty)
        #expect(try await store.add(certificate("A", "com.example.a", "com.example.b.voip", team: nil)))
        #expect(try await store.add(certificate("B", "com.example.c")))
        let second = try #require(try await store.topicClaims(after: first.version))
        #expect(second.certificateTopics.map(\.name).sorted() == ["com.example.a", "com.example.b", "com.example.c"])
        #expect(try await store.revokeCertificate("A", at: now))
        let third = try #require(try await store.topicClaims(after: second.version))
        #expect(third.certificateTopics.map(\.name) == ["com.example.c"])
        #expect(try await store.revokeCertificate("A", at: now) == false)
        #expect(try await store.topicClaims(after: third.version) == nil)
    }

    private static func keepsClaims(_ store: any TrustStore) async throws {
        let first = try claim("com.example.a", "A")
        try await store.claim([first], takesOver: false)
        for origin in TopicClaim.Origin.allCases {
            try await store.claim([try claim("com.example.a", "B", origin)], takesOver: false)
        }
        #expect(try await claims(of: store) == [first])
        let named = try claim("com.example.a", "A", .credential)
        try await store.claim([named], takesOver: false)
        #expect(try await claims(of: store) == [named], "a claim by use becomes one that does not count")
        try await store.claim([first], takesOver: false)
        #expect(try await claims(of: store) == [named])
        let moved = try claim("com.example.a", "B", .operator)
        try await store.claim([moved], takesOver: true)
        #expect(try await claims(of: store) == [moved])
        let unowned = try #require(Topic("com.example.unowned"))
        #expect(try await store.release([moved.topic, unowned]) == unowned, "and releases none")
        #expect(try await store.release([moved.topic]) == nil)
        #expect(try await store.release([moved.topic]) == moved.topic)
        #expect(try await claims(of: store).isEmpty)
    }

    private static func limitsClaims(_ store: any TrustStore) async throws {
        let limit = TopicClaims.maximumUses
        try await store.claim(try (0...limit).map { try claim("com.example.a\($0)", "A") }, takesOver: false)
        #expect(try await claims(of: store).count == limit)
        try await store.claim([try claim("com.example.b", "B")], takesOver: false)
        let others = [try claim("com.example.c", "A", .credential), try claim("com.example.d", "A", .operator)]
        try await store.claim(others, takesOver: false)
        #expect(try await claims(of: store).count == limit + 3)
        #expect(try await store.release([try claim("com.example.a0", "A").topic]) == nil)
        try await store.claim([try claim("com.example.e", "A"), try claim("com.example.f", "A")], takesOver: false)
        let names = try await claims(of: store).map(\.topic.name)
        #expect(names.contains("com.example.e") && !names.contains("com.example.f"))
    }

    private static func limitsCertificates(_ store: any TrustStore) async throws {
        var known = device("a", expires: .seconds(10))
        #expect(try await store.add(known, invitation: nil))
        func renew(_ serial: String, _ now: WallTime) async throws -> Bool {
            let next = EnrolledDevice.Certificate(serial: serial, expires: now + .seconds(60))
            guard try await store.renew(known.id, with: next, kept: nil, use: nil, limit: 2, now: now) else {
                return false
            }
            known.renew(with: next)
            return true
        }
        #expect(try await renew("41", now))
        #expect(try await renew("42", now) == false)
        #expect(try await renew("43", now + .seconds(11)))
        #expect(try await store.device(known.id) == known)
        #expect(try await store.revokeDevice(known.id, at: now))
        #expect(try await renew("44", now + .seconds(1000)) == false)
        let next = EnrolledDevice.Certificate(serial: "45", expires: now)
        #expect(try await store.renew(id("b"), with: next, kept: nil, use: nil, limit: 2, now: now) == false)
    }
}
