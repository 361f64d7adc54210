import HeraldModel
import HeraldTestSupport
import Logging
import NIOCore
import Synchronization
import Testing

@testable import HeraldGateway

@Suite
struct `drill service` {
    /// Keeps what is logged.
    private final class Log: Sendable {
        let lines = Mutex<[(level: Logger.Level, text: String)]>([])

        var texts: [String] { lines.withLock { $0.map(\.text) } }
    }

    private struct Handler: LogHandler {
        let log: Log
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let facts = (event.metadata ?? [:]).map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")
            log.lines.withLock { $0.append((event.level, "\(event.message) \(facts)")) }
        }
    }

    /// The machine's clock, as a test would have it.
    private final class Uptime: Sendable {
        let now = Mutex(NIODeadline.uptimeNanoseconds(1))

        func pass(_ time: TimeAmount) { now.withLock { $0 = $0 + time } }
    }

    private let clock = ManualClock()
    private let uptime = Uptime()
    private let log = Log()
    private let drills: DrillService

    init() {
        let (uptime, log) = (uptime, log)
        let logger = Logger(label: "test") { _ in Handler(log: log) }
        drills = DrillService(clock: clock, logger: logger) { uptime.now.withLock { $0 } }
    }

    private func pass(_ seconds: Int64) {
        clock.advance(by: .seconds(seconds))
        uptime.pass(.seconds(seconds))
        drills.tick()
    }

    @Test func `says when a drill begins, each minute that it is on, and when it ends`() {
        let slot = Slot(device: DeviceNumber(987_654_321), app: AppNumber(1))
        let drill = Drill(kind: .drop, target: .slot(slot), share: 0.5, duration: .seconds(150), seed: 9)
        _ = drills.start(drill)
        for _ in 0..<151 { pass(1) }
        let texts = log.texts
        #expect(texts.map { $0.prefix(11) } == ["drill begin", "drill is ac", "drill is ac", "drill ends "])
        #expect(log.lines.withLock { $0.allSatisfy { $0.level == .warning } })
        #expect(texts.allSatisfy { $0.contains("drill=1 ") && $0.contains("seed=9") && !$0.contains("987654321") })
        #expect(!drills.isOn)
    }

    @Test func `reminds of nothing when nothing is on, and counts anew with the next`() {
        _ = drills.start(Drill(kind: .drop, duration: .seconds(30), seed: 1))
        pass(31)
        for _ in 0..<200 { pass(1) }
        #expect(log.texts.count == 2)
        _ = drills.start(Drill(kind: .drop, duration: .seconds(90), seed: 1))
        pass(59)
        #expect(log.texts.count == 3)
        pass(1)
        #expect(log.texts.count == 4)
    }

    @Test func `stops one, those of the configuration, or all`() {
        for isConfigured in [false, true, true, false] {
            _ = drills.start(Drill(kind: .drop, duration: .seconds(60), seed: 1), isConfigured: isConfigured)
        }
        #expect(drills.stop(1)?.id == 1)
        #expect(drills.stop(1) == nil)
        #expect(drills.stopAll(onlyConfigured: true).map(\.id) == [2, 3])
        #expect(drills.reports.map(\.id) == [4])
        #expect(drills.stopAll().map(\.id) == [4])
        #expect(!drills.isOn)
    }

    @Test func `says how much is left by whichever clock is first`() throws {
        _ = drills.start(Drill(kind: .drop, duration: .seconds(60), seed: 1))
        pass(10)
        #expect(drills.reports.map(\.remaining) == [.seconds(50)])
        clock.advance(by: .seconds(20))
        #expect(drills.reports.map(\.remaining) == [.seconds(30)])
        clock.advance(by: .seconds(-3600))
        #expect(drills.reports.map(\.remaining) == [.seconds(50)])
        uptime.pass(.seconds(50))
        #expect(drills.reports.isEmpty)
    }

    @Test func `a year's jump of the clock, either way, does no harm`() {
        for years in [1, -1, 100, -100] as [Int64] {
            _ = drills.start(Drill(kind: .streams(3, period: .seconds(2)), duration: .seconds(60), seed: 1))
            clock.advance(by: .seconds(years * 31_557_600))
            _ = (
                drills.streams, drills.reports, drills.judge(DrillSubject(slot: Slot(device: .init(1), app: .init(1))))
            )
            uptime.pass(.seconds(61))
            #expect(drills.reports.isEmpty)
        }
    }

    @Test func `tells once that payloads may ask for drills, and that they may no longer`() {
        drills.allowsPayloadDrills = false
        #expect(log.texts.isEmpty && !drills.isOn)
        drills.allowsPayloadDrills = true
        drills.allowsPayloadDrills = true
        #expect(log.texts.count == 1 && drills.isOn && drills.allowsPayloadDrills)
        drills.allowsPayloadDrills = false
        #expect(log.texts.count == 2 && !drills.isOn)
    }
}
