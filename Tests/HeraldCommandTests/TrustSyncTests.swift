import Foundation
import HeraldCluster
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import NIOCore
import Synchronization
import Testing

@testable import HeraldCommand
@testable import HeraldService

/// The trust of several nodes on one log in memory, each with a folder of its own.
@Suite struct TrustSyncTests {
    private let log = TrustTestLog()
    private let clock = ManualClock()

    private func node(_ name: String, key: String = "", folder: String? = nil) async throws -> TrustNode {
        try await TrustNode(name, log, clock, key: key, folder: folder ?? TrustNode.emptyFolder())
    }

    private func settle(_ nodes: TrustNode...) async throws {
        // The second time, a node takes what one after it has shared.
        for node in nodes + nodes { try await node.settle() }
    }

    private func isRevoked(_ device: EnrolledDevice, at node: TrustNode) -> Bool {
        let lists = node.trust.revocationLists()
        _ = lists.reload()
        return lists.isRevoked(serial: device.serial, of: .device)
    }

    @Test func `a node with an empty folder and the key gets everything`() async throws {
        let first = try await node("a")
        let (kept, lost) = (
            try await first.trust.devices.enroll(name: "kept", now: clock.now()).record,
            try await first.trust.devices.enroll(name: "lost", now: clock.now()).record
        )
        try await first.trust.devices.revoke(lost.id.name, now: clock.now())
        _ = try await first.trust.providers.makeKey(
            team: "TEAM000001",
            topics: [try #require(Topic("com.example.chat"))],
            environments: [.production],
            now: clock.now()
        )
        try await first.trust.updateTokenKeys { try $0.rotate(now: clock.now()) }
        try await first.settle()
        let second = try await node("b", key: first.key)
        #expect(try await second.common() == first.common())
        #expect(isRevoked(lost, at: second) && !isRevoked(kept, at: second))
        #expect(try second.trust.serverCertificate().isOurs)
        #expect(try second.trust.serverCertificate().names != first.trust.serverCertificate().names)
        // From now on the folder has the key.
        try await second.settle()
        #expect(try TrustFile.read(second.key, .secret) == TrustFile.read(first.key, .secret))
    }

    @Test func `a node without the key, with another one, or of another cluster is refused`() async throws {
        let first = try await node("a")
        await #expect(throws: OtherTrust.noKey) { try await node("b") }
        let stranger = try await TrustNode("s", TrustTestLog(), clock)
        await #expect(throws: OtherTrust.otherKey) { try await node("b", key: stranger.key) }
        await #expect(throws: OtherTrust.otherKey) { try await node("b", folder: stranger.path) }
        await #expect(throws: CommandError.self) { try await node("b", key: first.key, folder: stranger.path) }
        try FileManager.default.removeItem(atPath: stranger.key)
        await #expect(throws: OtherTrust.otherAuthority) {
            try await node("b", key: first.key, folder: stranger.path)
        }
        let again = try await node("a", folder: first.path)
        #expect(try await again.common() == first.common())
    }

    @Test func `what somebody overwrites in the log is shared again, and nobody's revocation is lost`() async throws {
        let first = try await node("a")
        let device = try await first.trust.devices.enroll(name: "lost", now: clock.now()).record
        try await first.trust.devices.revoke(device.id.name, now: clock.now())
        try await first.settle()
        let facts = [SharedKey(.device, device.id.name), SharedKey(.file, SharedFile.Name.root.rawValue), .tokenKeys]
        for subject in facts.map({ LogSubject.trust($0.subject) }) + [.meta("trust")] {
            log.append(LogMessage(subject, payload: ByteBuffer(string: "x")), to: .trust) { _ in }
        }
        await #expect(throws: RecordError.setAside(.meta("trust"))) { try await node("b", key: first.key) }
        try await first.sync.catchUp()
        try await first.settle()
        // The node's next start writes the record of the cluster's trust.
        let again = try await node("a", folder: first.path)
        let second = try await node("b", key: first.key)
        #expect(try await second.common() == again.common())
        #expect(isRevoked(device, at: second))
    }

    @Test func `changes at two nodes come to both, and a revocation wins over a renewal`() async throws {
        let a = try await node("a")
        let device = try await a.trust.devices.enroll(name: nil, now: clock.now()).record
        try await a.settle()
        let b = try await node("b", key: a.key)
        try await a.trust.devices.revoke(device.id.name, now: clock.now())
        let renewed = try await b.trust.devices.renew(
            device.id,
            request: try TestRequest.make(),
            now: clock.now(),
            lifetime: .seconds(60)
        )
        try await settle(b, a)
        #expect(try await a.common() == b.common())
        for node in [a, b] {
            let merged = try #require(try await node.trust.store.device(device.id))
            #expect(merged.revoked != nil && merged.certificates.count == 2)
            for certificate in merged.certificates + renewed.record.certificates {
                let record = EnrolledDevice(id: device.id, name: nil, certificate: certificate, created: clock.now())
                #expect(isRevoked(record, at: node))
            }
        }
    }

    @Test func `two nodes that add a token key at the same moment have both`() async throws {
        let a = try await node("a")
        let b = try await node("b", key: a.key)
        for node in [a, b] { try await node.trust.updateTokenKeys { try $0.rotate(now: clock.now()) } }
        try await settle(a, b)
        #expect(try a.trust.tokenKeys().document == b.trust.tokenKeys().document)
        #expect(try a.trust.tokenKeys().keys.map(\.id) == [1, 2, 3])
    }

    @Test func `an authority that an operator replaces comes to the other nodes`() async throws {
        let a = try await node("a")
        let b = try await node("b", key: a.key)
        let other = try await TrustNode("s", TrustTestLog(), clock)
        let authority = try TrustFile.read(TrustLayout(data: other.path).authority, .open)
        try TrustFile.write(authority, to: TrustLayout(data: b.path).authority, .open)
        try await settle(b, a)
        #expect(try TrustFile.read(TrustLayout(data: a.path).authority, .open) == authority)
    }

    // MARK: - Invitations

    private func invite(at node: TrustNode) async throws -> InvitationCode {
        try #require(
            try await node.trust.invitations.make(name: nil, lifetime: .seconds(3600), now: clock.now()).first
        ).code
    }

    @Test func `of two nodes that get one code, one makes a device`() async throws {
        let a = try await node("a")
        let code = try await invite(at: a)
        try await a.settle()
        let b = try await node("b", key: a.key)
        let device = try await b.activate(code)
        await #expect(throws: TrustError(.notInvited, "")) { try await a.activate(code) }
        try await settle(a, b)
        #expect(try await a.trust.devices.all().map(\.id) == [device.id])
        #expect(try await a.common() == b.common())
    }

    @Test func `a lost answer, or a log that is away, loses no invitation`() async throws {
        let a = try await node("a")
        let (first, second) = (try await invite(at: a), try await invite(at: a))
        try await a.settle()
        log.fail(.lostAnswer)
        _ = try await a.activate(first)
        log.fail(.cutOff)
        await #expect(throws: TrustError(.unavailable, "")) { try await a.activate(second) }
        #expect(try await a.trust.devices.all().count == 1)
        // The device tries again, with the same code, when the use of the first time has come back from the log.
        log.setAway(false)
        try await a.sync.catchUp()
        _ = try await a.activate(second)
        try await a.settle()
        #expect(try await a.trust.devices.all().count == 2)
    }

    @Test func `another node gives the same key the same certificate, and takes no further use`() async throws {
        let a = try await node("a")
        let (code, request) = (try await invite(at: a), try TestRequest.make())
        try await a.settle()
        let b = try await node("b", key: a.key)
        let first = try await a.activate(code, with: request)
        try await a.sync.shareAll()
        let second = try await b.activate(code, with: request)
        #expect(second.pem == first.pem)
        try await settle(a, b)
        for node in [a, b] {
            #expect(try await node.trust.devices.all().map(\.id) == [first.record.id])
            #expect(try await node.trust.invitations.all().map(\.taken) == [1])
        }
        // It connects to one node, and is new to none.
        try await a.trust.store.note([DeviceSighting(device: first.record.id, at: clock.now(), address: "")])
        try await settle(a, b)
        #expect(try await b.trust.store.device(first.record.id)?.seen == clock.now())
        await #expect(throws: TrustError(.notInvited, "")) { try await b.activate(code, with: request) }
    }

    @Test func `a node of which nobody has heard keeps the use of a key that asks elsewhere`() async throws {
        let a = try await node("a")
        let (code, request) = (try await invite(at: a), try TestRequest.make())
        try await a.settle()
        let b = try await node("b", key: a.key)
        let first = try await a.activate(code, with: request).record
        clock.advance(by: .seconds(1))
        let second = try await b.activate(code, with: request).record
        #expect(second.id == first.id)
        try await settle(b, a)
        #expect(try await a.common() == b.common())
        #expect(try await a.trust.invitations.all().map(\.taken) == [1])
    }

    @Test func `the use of a device that never connected is free again at every node`() async throws {
        let a = try await node("a")
        let code = try await invite(at: a)
        try await a.settle()
        let b = try await node("b", key: a.key)
        let device = try await a.activate(code)
        try await settle(a, b)
        for node in [a, b] { _ = try await node.trust.devices.revoke(device.id.name, now: clock.now()) }
        try await settle(a, b)
        _ = try await b.activate(code)
        try await settle(a, b)
        for node in [a, b] {
            await #expect(throws: TrustError(.notInvited, "")) { try await node.activate(code) }
        }
        #expect(try await a.common() == b.common())
    }

    @Test func `a known device is invited at one node, and comes back at another`() async throws {
        let a = try await node("a")
        let device = try await a.trust.devices.enroll(name: "Lamp", now: clock.now()).record
        let made = try await a.trust.invitations.make(
            name: nil,
            lifetime: .seconds(3600),
            for: device.id.name,
            now: clock.now()
        )
        let code = try #require(made.first).code
        try await a.settle()
        let b = try await node("b", key: a.key)
        #expect(try await b.activate(code).id == device.id)
        await #expect(throws: TrustError(.notInvited, "")) { try await a.activate(code) }
        try await settle(b, a)
        #expect(try await a.trust.store.device(device.id)?.certificates.count == 2)
        #expect(try await a.common() == b.common())
    }

    // MARK: - Any order

    @Test(arguments: 0..<4) func `nodes agree after changes in any order`(seed: UInt64) async throws {
        var random = SeededGenerator(state: seed)
        let a = try await node("a")
        let nodes = [a, try await node("b", key: a.key), try await node("c", key: a.key)]
        var revoked: Set<DeviceID> = []
        for _ in 0..<40 {
            clock.advance(by: .seconds(1))
            let node = nodes[Int.random(in: 0..<3, using: &random)]
            try await change(node, &revoked, &random)
            let other = nodes[Int.random(in: 0..<3, using: &random)]
            if Bool.random(using: &random) { try await other.sync.shareAll() }
            if Bool.random(using: &random) { try await other.sync.catchUp() }
        }
        try await settle(nodes[0], nodes[1], nodes[2])
        try await settle(nodes[0], nodes[1], nodes[2])
        let common = try await a.common()
        for node in nodes {
            #expect(try await node.common() == common)
            #expect(try await Set(node.trust.devices.all().filter { $0.revoked != nil }.map(\.id)) == revoked)
        }
    }

    private func change(_ node: TrustNode, _ revoked: inout Set<DeviceID>, _ random: inout SeededGenerator) async throws
    {
        let (trust, now) = (node.trust, clock.now())
        let topic = try #require(Topic("com.example.app\(Int.random(in: 0..<3, using: &random))"))
        let team = "TEAM00000\(Int.random(in: 0..<3, using: &random))"
        do {
            switch Int.random(in: 0..<9, using: &random) {
            case 0: _ = try await trust.devices.enroll(name: nil, now: now)
            case 1:
                guard let device = try await trust.devices.all().randomElement(using: &random) else { return }
                try await trust.devices.revoke(device.id.name, now: now)
                revoked.insert(device.id)
            case 2:
                _ = try await trust.providers.makeKey(team: team, topics: [topic], environments: [.sandbox], now: now)
            case 3:
                guard let one = try await trust.providers.all().randomElement(using: &random) else { return }
                try await trust.providers.revoke(one.id, now: now)
            case 4: _ = try await trust.topics.claim([topic], for: team, takesOver: true, now: now)
            case 5: _ = try await trust.topics.release([topic])
            case 6:
                guard let open = try await trust.invitations.all().randomElement(using: &random) else {
                    _ = try await trust.invitations.make(name: nil, lifetime: .seconds(3600), now: now)
                    return
                }
                _ = try await trust.invitations.withdraw(open.id, now: now)
            case 7: try await trust.updateTokenKeys { try $0.rotate(now: now) }
            default:
                _ = try await trust.providers.issueCertificate(
                    topics: [topic],
                    team: team,
                    environments: [.production],
                    now: now
                )
            }
        } catch let error as TrustError {
            // Such as a second revocation, or a topic that nobody owns.
            let expected: Set<TrustError.Code> = [.alreadyRevoked, .unknownID, .invalidArgument]
            #expect(expected.contains(error.code), "\(error)")
        }
    }

    @Test func `a new token key seals when every live node has it`() throws {
        let (one, two) = (try #require(NodeName("one")), try #require(NodeName("two")))
        #expect(TokenKeyUse(newest: 3, live: [:]).usable == 3)
        let use = TokenKeyUse(newest: 3, live: [one: 3, two: 2])
        #expect(use.usable == 2 && use.lacking == [two])
        #expect(TokenKeyUse(newest: 2, live: [one: 3, two: 2]).usable == 2)
    }

    /// SplitMix64: the same numbers for the same seed.
    private struct SeededGenerator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    @Test func `what a node has caught up with is in force, and without the log nobody says so`() async throws {
        let a = try await node("a")
        try await a.settle()
        let b = try await node("b", key: a.key)
        let inForce = Mutex(0)
        let running = Task {
            await b.sync.run {
            } onChange: { [trust = b.trust] in
                let keys = try trust.tokenKeys().openKeys.count
                inForce.withLock { $0 = keys }
            }
        }
        try await a.trust.updateTokenKeys { try $0.rotate(now: clock.now()) }
        try await a.sync.shareAll()
        try await b.sync.catchUp(.trust)
        #expect(inForce.withLock { $0 } == 2)
        running.cancel()
        await running.value
        await #expect(throws: LogFailure.self) { try await b.sync.catchUp(.trust) }
    }

    @Test func `trust is fresh while it is looked at, and after a standstill once the log was heard`() {
        func moment(_ seconds: Int64) -> NIODeadline { .uptimeNanoseconds(1_000_000_000) + .seconds(seconds) }
        var stillness = TrustSync.Stillness(at: moment(0))
        #expect(stillness.end(of: moment(0), at: moment(1)) == moment(6))
        // The election of a leader.
        #expect(stillness.end(of: moment(0), at: moment(5)) == moment(10))
        #expect(stillness.end(of: moment(0), at: moment(10)) == moment(15))
        #expect(stillness.end(of: moment(0), at: moment(14)) == moment(15))
        // The node has stood still.
        #expect(stillness.end(of: moment(14), at: moment(20)) == nil)
        #expect(stillness.end(of: moment(14), at: moment(21)) == nil)
        #expect(stillness.end(of: moment(21), at: moment(22)) == moment(27))
    }
}
