import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Synchronization
import Testing

/// A device moves between two nodes on one log: nothing of the older connection overwrites the session of the newer one.
@Suite struct ClusterSessionTests {
    private static let atA = SessionRecord(subscriptions: ["apps/com.example.chat/#": 1], expiryInterval: 60)
    private static let later = SessionRecord(
        subscriptions: ["apps/com.example.chat/#": 1, "apps/com.example.mail/#": 1],
        expiryInterval: 60
    )
    private static let atB = SessionRecord(subscriptions: ["apps/com.example.news/#": 1], expiryInterval: 60)

    private let log = MemoryLog()
    private let linkOfA: NodeLink
    private let a: ClusterRegistry
    private let b: ClusterRegistry
    private let device: DeviceNumber

    init() async throws {
        linkOfA = NodeLink(log)
        a = try await .loaded("a", from: linkOfA)
        b = try await .loaded("b", from: log)
        device = try await a.number(of: try #require(DeviceID("phone")))
        #expect(try await b.number(of: try #require(DeviceID("phone"))) == device)
    }

    /// A connection at A, with a session.
    private func connectAtA() async throws {
        let read = try await a.record(of: device, fence: 10)
        #expect(try await a.begin(Self.atA, replacing: read, of: device, fence: 10) == .stored)
    }

    /// The newer connection at B, which resumes what it finds.
    /// - Returns: The session that it found.
    private func moveToB() async throws -> SessionRecord? {
        var read = try await b.record(of: device, fence: 20)
        while true {
            switch try await b.begin(read.session, replacing: read, of: device, fence: 20) {
            case .stored: return read.session
            case .changed(let present): read = present
            }
        }
    }

    /// The session that a third connection would find.
    private var stored: SessionRecord? {
        get async throws { try await b.record(of: device, fence: .max).session }
    }

    @Test func `a connect and a disconnect write the device's record twice, also at another node`() async throws {
        try await connectAtA()
        try await a.keep(Self.later, for: device, fence: 10)
        let before = log.appends
        #expect(try await moveToB() == Self.later)
        try await b.keep(Self.atB, for: device, fence: 20)
        #expect(log.appends - before == 2)
        #expect(try await stored == Self.atB)
    }

    @Test func `a write that is under way when the device moves is refused for good`() async throws {
        try await connectAtA()
        linkOfA.set(.holding)
        let late = Task { [a, device] in try await a.keep(Self.later, for: device, fence: 10) }
        await linkOfA.waitForHeld()
        #expect(try await moveToB() == Self.atA)
        try await b.keep(Self.atB, for: device, fence: 20)
        linkOfA.set(.open)
        await #expect(throws: NewerConnection.self) { try await late.value }
        #expect(try await stored == Self.atB)
        await #expect(throws: NewerConnection.self) { try await a.keep(nil, for: device, fence: 10) }
        await #expect(throws: NewerConnection.self) { try await a.setSavingPower(true, for: device, fence: 10) }
        await #expect(throws: NewerConnection.self) { _ = try await a.record(of: device, fence: 10) }
        #expect(try await b.record(of: device, fence: 20).isSavingPower == false)
    }

    @Test func `a write that arrives long after its node gave it up changes nothing`() async throws {
        try await connectAtA()
        linkOfA.set(.cut)
        await #expect(throws: RecordChangeFailure.unknown) { try await a.keep(Self.later, for: device, fence: 10) }
        #expect(try await moveToB() == Self.atA)
        linkOfA.set(.open)
        #expect(try await stored == Self.atA)
        await #expect(throws: NewerConnection.self) { try await a.keep(Self.later, for: device, fence: 10) }
        #expect(try await stored == Self.atA)
    }

    @Test func `a write whose answer was lost is resumed at the other node, and is not repeated there`() async throws {
        try await connectAtA()
        linkOfA.set(.losingAnswers)
        let repeated = Task { [a, device] in try await a.keep(Self.later, for: device, fence: 10) }
        await linkOfA.waitForHeld()
        #expect(try await moveToB() == Self.later)
        try await b.keep(Self.atB, for: device, fence: 20)
        // Only now A hears that there is no answer, and looks.
        linkOfA.set(.open)
        await #expect(throws: NewerConnection.self) { try await repeated.value }
        #expect(try await stored == Self.atB)
    }

    // MARK: - Registrations

    private static let moment = WallTime(seconds: 1_800_000_000)

    private func register() async throws -> Registration {
        try await connectAtA()
        return try await a.register(Slot(device: device, app: AppNumber(1)), at: Self.moment, fence: 10)
    }

    @Test func `a change of a registration that is under way when the device moves is refused for good`() async throws {
        let made = try await register()
        linkOfA.set(.holding)
        let late = Task { [a] in try await a.unregister(made.slot, at: Self.moment, fence: 10) }
        await linkOfA.waitForHeld()
        // The newer connection asks for nothing: it resumes.
        _ = try await moveToB()
        linkOfA.set(.open)
        await #expect(throws: NewerConnection.self) { _ = try await late.value }
        await #expect(throws: NewerConnection.self) { try await a.setEnabled(false, for: made.slot, fence: 10) }
        await #expect(throws: NewerConnection.self) {
            _ = try await a.register(Slot(device: device, app: AppNumber(2)), at: Self.moment, fence: 10)
        }
        #expect(b.snapshot().registrations == [made])
        // A node that starts reads the fence, too.
        let c = try await ClusterRegistry.loaded("c", from: log)
        await #expect(throws: NewerConnection.self) {
            _ = try await c.unregister(made.slot, at: Self.moment, fence: 10)
        }
        #expect(try await b.unregister(made.slot, at: Self.moment, fence: 20)?.isLive == false)
    }

    @Test func `a change of a registration that arrives long after its node gave it up changes nothing`() async throws {
        let made = try await register()
        linkOfA.set(.cut)
        await #expect(throws: RecordChangeFailure.unknown) {
            try await a.setEnabled(false, for: made.slot, fence: 10)
        }
        _ = try await moveToB()
        linkOfA.set(.open)
        #expect(b.snapshot().registrations == [made])
    }

    @Test func `a registration is confirmed by one write of a new connection, and then by none`() async throws {
        let made = try await register()
        _ = try await moveToB()
        let before = log.appends
        #expect(try await b.register(made.slot, at: Self.moment + .seconds(60), fence: 20) == made)
        #expect(log.appends == before)
    }

    // MARK: - Beginnings

    @Test func `a session that changes between the read and the beginning is read again`() async throws {
        try await connectAtA()
        let read = try await b.record(of: device, fence: 20)
        try await a.keep(Self.later, for: device, fence: 10)
        guard case .changed(let present) = try await b.begin(nil, replacing: read, of: device, fence: 20) else {
            throw RecordChangeFailure.contended
        }
        #expect(present.session == Self.later)
        log.fail(.lostAnswer)
        #expect(try await b.begin(nil, replacing: present, of: device, fence: 20) == .stored)
        #expect(try await stored == nil)
    }

    @Test func `a connection that is older than the session's owner does not begin`() async throws {
        let early = try await a.record(of: device, fence: 10)
        _ = try await moveToB()
        await #expect(throws: NewerConnection.self) {
            _ = try await a.begin(Self.atA, replacing: early, of: device, fence: 10)
        }
        #expect(try await stored == nil)
    }
}

/// The way of one node to a log, which a test interrupts.
private final class NodeLink: ReplicatedLog {
    enum Mode {
        case open
        /// Appends wait on their way.
        case holding
        /// Appends wait on their way, and their sender hears that nobody answers.
        case cut
        /// Appends are made, and their sender hears nothing yet.
        case losingAnswers
    }

    private struct State {
        var mode = Mode.open
        var held: [@Sendable () -> Void] = []
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let log: any ReplicatedLog
    private let state = Mutex(State())

    init(_ log: any ReplicatedLog) {
        self.log = log
    }

    /// Sets what happens from now on; what was held goes on.
    func set(_ mode: Mode) {
        let held = state.withLock { state in
            defer { state.held = [] }
            state.mode = mode
            return state.held
        }
        for one in held { one() }
    }

    /// Returns when something is held.
    func waitForHeld() async {
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.held.isEmpty { state.waiting = continuation }
                return !state.held.isEmpty
            }
            if isHeld { continuation.resume() }
        }
    }

    func append(_ message: LogMessage, to stream: LogStream, _ done: @escaping @Sendable (AppendOutcome) -> Void) {
        switch state.withLock({ $0.mode }) {
        case .open: log.append(message, to: stream, done)
        case .holding: hold { [log] in log.append(message, to: stream, done) }
        case .cut:
            hold { [log] in log.append(message, to: stream) { _ in } }
            done(.unknown)
        case .losingAnswers:
            log.append(message, to: stream) { _ in }
            hold { done(.unknown) }
        }
    }

    private func hold(_ rest: @escaping @Sendable () -> Void) {
        let waiting = state.withLock { state in
            state.held.append(rest)
            return state.waiting.take()
        }
        waiting?.resume()
    }

    func read(
        _ subjects: [LogSubject],
        in stream: LogStream,
        atLeast bound: UInt64,
        _ done: @escaping @Sendable (Result<[LogEntry], LogFailure>) -> Void
    ) {
        guard state.withLock({ $0.mode != .cut }) else { return done(.failure(.unavailable)) }
        log.read(subjects, in: stream, atLeast: bound, done)
    }

    func follow(
        _ filters: [LogSubject],
        in stream: LogStream,
        after sequence: UInt64?,
        _ receive: @escaping LogReceiver
    ) -> StopFollowing {
        log.follow(filters, in: stream, after: sequence, receive)
    }
}

extension ClusterRegistry {
    fileprivate func keep(_ session: SessionRecord?, for device: DeviceNumber, fence: UInt64) async throws {
        try await withCheckedThrowingContinuation { continuation in
            setSession(session, for: device, fence: fence) { continuation.resume(with: $0) }
        }
    }

    fileprivate func begin(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64
    ) async throws -> SessionBeginning {
        try await withCheckedThrowingContinuation { continuation in
            beginSession(session, replacing: read, of: device, fence: fence) { continuation.resume(with: $0) }
        }
    }

    fileprivate func record(of device: DeviceNumber, fence: UInt64) async throws -> DeviceRecord {
        try await withCheckedThrowingContinuation { continuation in
            readDeviceRecord(device, fence: fence) { continuation.resume(with: $0) }
        }
    }
}
