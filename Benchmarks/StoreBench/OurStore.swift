import Foundation
import HeraldMailbox
import HeraldModel
import HeraldStores
import Logging
import Synchronization

/// Stores the workload in the store, keeping a window of puts on their way, as provider connections do.
struct OurStore {
    struct Outcome {
        /// Notifications per second.
        let rate: Double
        /// Microseconds of processor time for each.
        let cpu: Double
        /// Puts per commit.
        let batch: Int
        /// Milliseconds from put to report.
        let p50: Double
        let p99: Double
        let longest: Double
        let checkpoints: Int
        /// Milliseconds.
        let meanCheckpoint: Double
        let longestCheckpoint: Double
    }

    private struct Clock: WallClock {
        func now() -> WallTime { WallTime(seconds: 1_800_000_000) }
    }

    /// As many as ten connections with a hundred streams each have on their way.
    static let window = 1000

    let options: StoreBench.Options

    init(_ options: StoreBench.Options) {
        self.options = options
    }

    private var path: String { options.folder + "/ours.sqlite" }

    private func open() throws -> SQLiteStore {
        var configuration = SQLiteStoreConfiguration()
        configuration.commitDelay = .microseconds(options.delay)
        if options.checkpoint > 0 { configuration.checkpointPages = options.checkpoint }
        if options.gapCheckpoint > 0 { configuration.gapCheckpointPages = options.gapCheckpoint }
        return try SQLiteStore(
            path: path,
            configuration: configuration,
            clock: Clock(),
            logger: Logger(label: "bench"),
            onFatal: { error in
                print(error)
                exit(1)
            }
        )
    }

    func run() async throws -> Outcome {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        let envelopes = Workload(options).notifications.map { Envelope($0, generation: 0) }
        let store = try open()
        let reports = Reports(count: envelopes.count)
        store.report(to: reports)
        let cpu = StoreBench.processorTime()
        let start = ContinuousClock.now
        for (place, envelope) in envelopes.enumerated() {
            pace(place, since: start)
            reports.enter()
            store.put(envelope, reason: .deviceOffline, tag: nil)
        }
        reports.waitForAll()
        let elapsed = start.duration(to: .now)
        let used = StoreBench.processorTime() - cpu
        let statistics = store.statistics
        await store.close()
        let latencies = reports.latencies.sorted()
        return Outcome(
            rate: Double(envelopes.count) / seconds(elapsed),
            cpu: used / Double(envelopes.count) * 1e6,
            batch: max(1, envelopes.count / max(1, statistics.commits)),
            p50: seconds(latencies[latencies.count / 2]) * 1000,
            p99: seconds(latencies[latencies.count / 100 * 99]) * 1000,
            longest: seconds(latencies.last ?? .zero) * 1000,
            checkpoints: statistics.checkpoints,
            meanCheckpoint: seconds(statistics.checkpointTime) * 1000 / Double(max(1, statistics.checkpoints)),
            longestCheckpoint: seconds(statistics.longestCheckpoint) * 1000
        )
    }

    /// With a rate, waits for a put's moment.
    private func pace(_ place: Int, since start: ContinuousClock.Instant) {
        guard options.rate > 0 else { return }
        let early = Double(place) / Double(options.rate) - seconds(start.duration(to: .now))
        if early > 0 { usleep(UInt32(early * 1e6)) }
    }

    /// How long a start takes on what an earlier run stored, how much memory it takes, and how long the journal's searches last.
    func measureRestart() async throws {
        var figures: [(String, String)] = []
        let before = OurStore.memory()
        let store = try await time("start_s", &figures, scale: 1) { try open() }
        figures.append(("stored", "\(store.count)"))
        figures.append(("memory_mib", "\(OurStore.memory() - before)"))
        let identifier = JournalQuery.notification(NotificationID(high: 1, low: 1))
        try await time("search_by_id_ms", &figures) { _ = try await store.lines(matching: identifier, limit: 10) }
        let device = JournalQuery.device(DeviceNumber(0))
        try await time("search_by_device_ms", &figures) { _ = try await store.lines(matching: device, limit: 10) }
        let slots = (1...1000).map { number in
            RegisteredSlot(Slot(device: DeviceNumber(UInt64(number)), app: AppNumber(1)), generation: 0)
        }
        try await time("read_1000_ms", &figures) { _ = try await store.waiting(in: slots) }
        let end = Clock().now() + .seconds(31 * 86_400)
        try await time("expire_10000_ms", &figures) { _ = try await store.removeExpired(at: end, limit: 10_000) }
        try await time("trim_ms", &figures) { try await store.trim(before: end, maximumBytes: 0) }
        await store.close()
        print("{" + figures.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
    }

    private func time<Value>(
        _ name: String,
        _ figures: inout [(String, String)],
        scale: Double = 1000,
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        let start = ContinuousClock.now
        let value = try await body()
        figures.append((name, StoreBench.decimal(seconds(start.duration(to: .now)) * scale)))
        return value
    }

    /// Resident memory of the process, in MiB (pages of 4 KiB); 0 where the system does not tell.
    private static func memory() -> Int {
        let data = FileHandle(forReadingAtPath: "/proc/self/statm")?.availableData ?? Data()
        let fields = String(decoding: data, as: UTF8.self).split(separator: " ")
        return (fields.dropFirst().first.flatMap { Int($0) } ?? 0) / 256
    }

    private func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

/// Lets a window of puts through, and notes how long each took.
///
/// The one who puts sleeps when the window is full and is woken once when half of it is free: one thread's turn for many
/// puts, as an event loop that is woken for a burst.
private final class Reports: MailboxStoreReporter {
    private struct State {
        var entered: [ContinuousClock.Instant] = []
        var latencies: [Duration] = []
        var isAsleep = false
        var isLast = false
    }

    private let state: Mutex<State>
    private let bell = DispatchSemaphore(value: 0)

    init(count: Int) {
        var state = State()
        state.entered.reserveCapacity(count)
        state.latencies.reserveCapacity(count)
        self.state = Mutex(state)
    }

    var latencies: [Duration] { state.withLock { $0.latencies } }

    /// Waits for room, and notes the beginning of a put.
    func enter() {
        let sleeps = state.withLock { state in
            state.entered.append(.now)
            state.isAsleep = state.entered.count - state.latencies.count > OurStore.window
            return state.isAsleep
        }
        if sleeps { bell.wait() }
    }

    func waitForAll() {
        let sleeps = state.withLock { state in
            state.isLast = true
            state.isAsleep = state.latencies.count < state.entered.count
            return state.isAsleep
        }
        if sleeps { bell.wait() }
    }

    func stored(_ puts: [StoredPut]) {
        let now = ContinuousClock.now
        let wakes = state.withLock { state in
            // Reported in the order of the puts.
            for _ in puts { state.latencies.append(state.entered[state.latencies.count].duration(to: now)) }
            let left = state.entered.count - state.latencies.count
            guard state.isAsleep, left <= (state.isLast ? 0 : OurStore.window / 2) else { return false }
            state.isAsleep = false
            return true
        }
        if wakes { bell.signal() }
    }

    func failed(_ envelopes: [Envelope]) {
        print("\(envelopes.count) puts failed")
        exit(1)
    }

    func unknown(_ envelopes: [Envelope]) {
        failed(envelopes)
    }
}
