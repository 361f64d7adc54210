import Foundation
import GRDB
import HeraldModel
import HeraldStores
import HeraldTrust
import Synchronization

/// Enrolling, revoking and the trust part of a start, with few and with many certificates in the ledger; and one revocation
/// list of 100,000.
///
/// Prints the median of each, in milliseconds. Its argument is an empty folder.
@main
struct LedgerBench {
    private static let rounds = 41

    static func main() async throws {
        guard CommandLine.arguments.count == 2 else { return print("usage: LedgerBench FOLDER") }
        print("issued    revoked  enroll ms  revoke ms  start ms")
        for (issued, revoked) in [(10, 0), (2_000, 1_000), (1_000_000, 1_000), (200_000, 100_000)] {
            let data = "\(CommandLine.arguments[1])/\(issued)"
            let bench = try await LedgerBench(data, issued: issued, revoked: revoked)
            let enrolling = try await bench.median { folder in
                _ = try await folder.devices.enroll(name: nil, now: bench.now)
            }
            let devices = Mutex<[DeviceID]>([])
            for _ in 0..<rounds {
                let device = try await bench.folder.devices.enroll(name: nil, now: bench.now).record.id
                devices.withLock { $0.append(device) }
            }
            let revoking = try await bench.median { folder in
                guard let device = devices.withLock({ $0.popLast() }) else { return }
                try await folder.devices.revoke(device.name, now: bench.now)
            }
            let starting = try await bench.median { _ in _ = try await TrustService(folder: try await bench.open()) }
            let figures = [enrolling, revoking, starting].map { String(format: "%9.2f", $0) }.joined(separator: "  ")
            print(String(format: "%9d %8d", issued, revoked), figures)
        }
    }

    private let data: String
    private let folder: TrustFolder
    private let now = WallTime(seconds: 1_900_000_000)

    private init(_ data: String, issued: Int, revoked: Int) async throws {
        self.data = data
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        _ = try await LedgerBench.open(data, now)
        try LedgerBench.fill(TrustLayout(data: data).ledger, issued: issued, revoked: revoked, now)
        // Publishes the list.
        folder = try await LedgerBench.open(data, now)
    }

    private func open() async throws -> TrustFolder { try await LedgerBench.open(data, now) }

    private static func open(_ data: String, _ now: WallTime) async throws -> TrustFolder {
        try await TrustFolder.create(at: data, store: TrustDatabase.open, now: now)
    }

    private static func fill(_ path: String, issued: Int, revoked: Int, _ now: WallTime) throws {
        let time = now.milliseconds
        try DatabaseQueue(path: path).write { database in
            let device = try database.makeStatement(sql: "INSERT INTO device VALUES (?, ?, NULL, ?, ?)")
            let certificate = try database.makeStatement(sql: "INSERT INTO device_certificate VALUES (?, 0, ?, ?)")
            for number in 1...max(1, issued) {
                let id = String(UInt64.random(in: .min ... .max), radix: 36)
                try device.execute(arguments: [number, "d\(id)", time, number <= revoked ? time : nil])
                let serial = "40" + String(format: "%016lx%014lx", UInt64.random(in: .min ... .max), number)
                try certificate.execute(arguments: [number, serial, time + 31_536_000_000])
            }
        }
    }

    private func median(_ work: @Sendable (TrustFolder) async throws -> Void) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<LedgerBench.rounds {
            let start = ContinuousClock.now
            try await work(folder)
            times.append((ContinuousClock.now - start) / .milliseconds(1))
        }
        return times.sorted()[LedgerBench.rounds / 2]
    }
}
