import Foundation
import HeraldMailbox
import HeraldModel
import HeraldStores
import Logging

/// Fills a journal with lines, and measures each kind of search in it.
struct JournalBench {
    /// Searches of each kind.
    private static let rounds = 40
    private static let devices: UInt64 = 10_000
    private static let apps: UInt64 = 20

    let folder: String
    let lines: Int

    private struct Clock: WallClock {
        func now() -> WallTime { WallTime(milliseconds: 1_700_000_000_000) }
    }

    func run() async throws {
        let store = try SQLiteStore(
            path: folder + "/journal.sqlite",
            clock: Clock(),
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() },
            onFatal: { _ in }
        )
        let begin = StoreBench.processorTime()
        var last: UInt64 = 0
        for first in stride(from: 0, to: lines / 3, by: 1000) {
            for number in first..<min(first + 1000, lines / 3) {
                last = UInt64(number)
                store.record(Self.events(last))
            }
            // Waits for the writer, so that memory stays small.
            _ = try await store.lines(matching: .device(DeviceNumber(.max - 1)), limit: 0)
        }
        let cost = (StoreBench.processorTime() - begin) / Double(max(1, lines)) * 1e6
        var report = [("lines", "\(lines)"), ("bytes", "\(store.sizeOnDisk)")]
        report.append(("cpu_us_a_line", StoreBench.decimal(cost)))
        for (name, filter) in Self.kinds {
            var times: [Double] = []
            for round in 0..<Self.rounds {
                let wanted = last / UInt64(Self.rounds) * UInt64(round)
                let start = ContinuousClock.now
                _ = try await store.search(filter(wanted), limit: 100, within: .milliseconds(150))
                times.append(Double((ContinuousClock.now - start).components.attoseconds) / 1e15)
            }
            times.sort()
            report.append((name + "_p50_ms", StoreBench.decimal(times[times.count / 2])))
            report.append((name + "_p95_ms", StoreBench.decimal(times[times.count * 95 / 100])))
        }
        await store.close()
        print("{" + report.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
    }

    /// Two identifiers that look random.
    private static func id(_ number: UInt64, _ salt: UInt64) -> NotificationID {
        NotificationID(
            high: (number &+ salt) &* 0x9E37_79B9_7F4A_7C15,
            low: (number ^ salt) &* 0xC4CE_B9FE_1A85_EC53
        )
    }

    private static func slot(_ number: UInt64) -> Slot {
        let device = (number &* 0xD6E8_FEB8_6659_FD93 >> 20) % devices
        return Slot(device: DeviceNumber(device + 1), app: AppNumber(UInt32(number % apps) + 1))
    }

    private static func events(_ number: UInt64) -> [JournalEvent] {
        let request = JournalRequest(
            sender: SenderNumber(UInt16(number % 50) + 1),
            pushType: .alert,
            priority: .immediate,
            payloadBytes: 300
        )
        let end: JournalState = number % 1000 == 0 ? .discardedExpiredFromStorage : .deliveredFromStorage
        return [JournalState.received, .storedDeviceOffline, end].enumerated().map { index, state in
            JournalEvent(
                time: WallTime(milliseconds: 1_700_000_000_000 + Int64(number) * 10 + Int64(index)),
                id: id(number, 1),
                uniqueID: id(number, 2),
                slot: slot(number),
                state: state,
                request: state == .received ? request : nil
            )
        }
    }

    /// Kinds of searches, by the number of a notification.
    private static let kinds: [(String, @Sendable (UInt64) -> JournalFilter)] = [
        ("id", { number in filter { $0.ids.add([id(number, 1)]) } }),
        ("unknown_id", { number in filter { $0.ids.add([id(number, 3)]) } }),
        ("device", { number in filter { $0.devices.add([slot(number).device]) } }),
        ("token", { number in filter { $0.slots.add([slot(number)]) } }),
        (
            "topic_and_state",
            { number in
                filter {
                    $0.topics.add([.app(slot(number).app)])
                    $0.states.add([.discardedExpiredFromStorage])
                }
            }
        ),
        ("provider", { number in filter { $0.senders.add([SenderNumber(UInt16(number % 50) + 1)]) } }),
        ("unknown_provider", { _ in filter { $0.senders.add([SenderNumber(60_000)]) } }),
    ]

    private static func filter(_ change: (inout JournalFilter) -> Void) -> JournalFilter {
        var filter = JournalFilter()
        change(&filter)
        return filter
    }
}
