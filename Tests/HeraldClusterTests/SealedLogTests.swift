import Crypto
import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import NIOCore
import Synchronization
import Testing

/// Tests of a log to which somebody else than a node writes: garbage, and what the nodes wrote elsewhere or before.
@Suite struct SealedLogTests {
    private static let seal = RecordSeal(SymmetricKey(size: .bits256))
    private let memory = MemoryLog()
    private let setAside = SetAside()
    private let clock = ManualClock()
    private let log: SealedLog
    private let app: App
    private let partitions: Partitions

    init() throws {
        log = SealedLog(memory, Self.seal, setAside)
        app = App(topic: try #require(Topic("com.example.chat")), environment: .production)
        partitions = try #require(Partitions(count: 1))
    }

    // MARK: - The seal

    @Test func `a payload opens at its place alone, and unchanged`() throws {
        let seal = Self.seal.of(7)
        for size in [0, 1, 300, 5000] {
            let payload = ByteBuffer(repeating: 42, count: size)
            let sealed = try #require(seal.seal(payload, at: "hrld.a.b", if: 9))
            #expect(seal.open(sealed, at: "hrld.a.b", if: 9) == payload)
            #expect(seal.seal(payload, at: "hrld.a.b", if: 9) != sealed, "nonces differ")
            #expect(sealed.readableBytesView.firstRange(of: [42, 42, 42]) == nil)
            #expect(seal.open(sealed, at: "hrld.a.c", if: 9) == nil)
            for condition in [nil, 0, 8, 10] as [UInt64?] {
                #expect(seal.open(sealed, at: "hrld.a.b", if: condition) == nil)
            }
            #expect(Self.seal.open(sealed, at: "hrld.a.b", if: 9) == nil, "another incarnation")
            #expect(RecordSeal(SymmetricKey(size: .bits256)).of(7).open(sealed, at: "hrld.a.b", if: 9) == nil)
            for length in 0..<min(sealed.readableBytes, 64) {
                let part = try #require(sealed.getSlice(at: 0, length: length))
                #expect(seal.open(part, at: "hrld.a.b", if: 9) == nil)
            }
            for index in sealed.readableBytesView.indices.prefix(64) + sealed.readableBytesView.indices.suffix(20) {
                var changed = sealed
                changed.setInteger(sealed.readableBytesView[index] ^ 1, at: index)
                #expect(seal.open(changed, at: "hrld.a.b", if: 9) == nil)
            }
        }
        #expect(RecordSeal(SymmetricKey(data: [1])).seal(ByteBuffer(), at: "") == nil)
    }

    // MARK: - One record

    private func read(_ subject: LogSubject) async throws -> LogEntry {
        try #require(try await log.read([subject], in: .meta, atLeast: 0).first)
    }

    @Test func `forged, moved and repeated records are set aside, and a put takes their place`() async throws {
        let (subject, other) = (LogSubject.meta("one"), LogSubject.meta("other"))
        let first = LogMessage(subject, payload: ByteBuffer(string: "first"), expectedSequence: 0)
        guard case .stored(let sequence) = await log.append(first, to: .meta) else {
            Issue.record("it was not stored")
            return
        }
        let old = try #require(memory.newest(in: .meta)[subject]).payload
        let second = LogMessage(subject, payload: ByteBuffer(string: "second"), expectedSequence: sequence)
        _ = await log.append(second, to: .meta)
        #expect(String(buffer: try await read(subject).payload) == "second")
        #expect(setAside.warning == nil)
        let present = try #require(memory.newest(in: .meta)[subject])
        for forged in [
            LogMessage(subject, payload: ByteBuffer(string: "x")), LogMessage(subject, payload: ByteBuffer()),
            // The end of a record cannot be forged either.
            LogMessage.tombstone(subject, expecting: present.sequence),
            LogMessage(other, payload: present.payload, expectedSequence: 0),
            // Without its condition, and with that of another state.
            LogMessage(subject, payload: old),
        ] {
            _ = await memory.append(forged, to: .meta)
            let entry = try await read(forged.subject)
            #expect(entry.isSetAside && !entry.isTombstone && entry.payload.readableBytes == 0)
        }
        #expect(try #require(setAside.warning).contains("5 records or messages were set aside"))
        _ = await log.append(LogMessage(subject, payload: ByteBuffer(string: "third")), to: .meta)
        #expect(String(buffer: try await read(subject).payload) == "third")
        // A removal of the nodes opens as one.
        let third = try await read(subject)
        _ = await log.append(.tombstone(subject, expecting: third.sequence), to: .meta)
        #expect(try await read(subject).isTombstone)
    }

    @Test func `an hour after the last one the warning ends`() throws {
        let begin = ContinuousClock.now
        let isLater = Atomic(false)
        let setAside = SetAside(now: { isLater.load(ordering: .relaxed) ? begin + SetAside.memory : begin })
        #expect(setAside.warning == nil)
        for number in 0..<20 { setAside.record(.meta("\(number)")) }
        let warning = try #require(setAside.warning)
        #expect(warning.contains("20 records") && warning.contains("hrld.meta.7,") && !warning.contains("hrld.meta.8"))
        isLater.store(true, ordering: .relaxed)
        #expect(setAside.warning == nil)
    }

    // MARK: - A node

    private func store(_ name: String) async throws -> ClusterStore {
        let node = try #require(NodeName(name))
        let changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: node))
        let cluster = try await ClusterIdentity.open(partitions, at: clock.now(), changes)
        let store = ClusterStore(
            log: log.of(cluster.incarnation),
            cluster: cluster,
            own: ClaimRecord(node: node, incarnation: 1),
            journal: MemoryStore(clock: clock),
            clock: clock,
            scheduler: QueueScheduler(),
            logger: .silent
        )
        try await store.load()
        return store
    }

    /// Writes one byte over every record, and at places that no record has.
    private func writeGarbage() async -> Int {
        var count = 0
        for stream in LogStream.all(of: partitions) {
            let prefix = stream.subjects.text.dropLast()
            let others = ["x", "x.c", "AAAAAAAAAAA", "AAAAAAAAAAA.n.1.1", "stored.x", "fact.x.x", "production.YQ"]
                .map { LogSubject("\(prefix)\($0)") }
            for subject in Array(memory.newest(in: stream).keys) + others where subject != .meta("cluster") {
                _ = await memory.append(LogMessage(subject, payload: ByteBuffer(string: "x")), to: stream)
                _ = await memory.append(LogMessage(others[0], payload: ByteBuffer()), to: stream)
                count += 1
            }
        }
        return count
    }

    @Test func `a byte over every record ends no node, and a running node restores what it knows`() async throws {
        let store = try await store("a")
        let device = try await store.number(of: try #require(DeviceID("phone")))
        let number = try await store.number(of: app, for: nil, at: clock.now())
        let slot = Slot(device: device, app: number)
        let registration = try await store.register(slot, at: clock.now())
        let channel = BroadcastChannel(
            id: ChannelID(high: 1, low: 2),
            app: number,
            storage: .newest,
            created: clock.now()
        )
        try await store.createChannel(channel)
        let before = try await store.loadRegistry()
        #expect(await writeGarbage() > 40)
        try store.check()
        #expect(setAside.warning != nil)
        let after = try await store.loadRegistry()
        #expect(after.registrations == before.registrations && after.apps == before.apps)
        // Nothing new gets a number that something had.
        let other = App(topic: try #require(Topic("com.example.other")), environment: .production)
        #expect(try await store.number(of: other, for: nil, at: clock.now()).value > number.value + 1)
        try await store.unregister(slot, at: clock.now())
        let again = try await store.register(slot, at: clock.now())
        #expect(again.generation > registration.generation, "no token of an ended registration comes back")
        // At another node's start.
        let next = try await self.store("b")
        let loaded = try await next.loadRegistry()
        #expect(
            loaded.registrations.contains(again) && loaded.devices.map(\.1) == [device]
                && loaded.apps.map(\.number).contains(number)
        )
        #expect(try await next.number(of: try #require(DeviceID("tablet"))).value > device.value + 4096)
        #expect(try await next.loadChannels().map(\.channel) == [channel])
        try next.check()
        for each in [store, next] { each.close() }
    }

    @Test func `a cluster whose record was overwritten is known to a node that has seen it, and new to none`()
        async throws
    {
        let changes = RecordChanges(log: log, barriers: LogBarriers(log: log, node: try #require(NodeName("a"))))
        _ = try await ClusterIdentity.open(partitions, at: clock.now(), changes)
        _ = await memory.append(LogMessage(.meta("cluster"), payload: ByteBuffer(string: "x")), to: .meta)
        await #expect(throws: OtherTrust.otherKey) { try await ClusterIdentity.read(changes) }
        await #expect(throws: OtherTrust.otherKey) {
            try await ClusterIdentity.open(partitions, at: clock.now(), changes)
        }
        await #expect(throws: ImportProblem.notEmpty) {
            try await ClusterIdentity.beginImport(
                of: Array(repeating: 1, count: 16),
                partitions,
                without: [],
                at: clock.now(),
                changes
            )
        }
    }
}

extension ReplicatedLog {
    /// The log, sealed under a key of its own.
    func sealed(of incarnation: UInt32) -> SealedLog {
        SealedLog(self, RecordSeal(SymmetricKey(size: .bits256)), SetAside()).of(incarnation)
    }
}
