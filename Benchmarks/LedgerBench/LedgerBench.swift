import Foundation
import GRDB
import HeraldModel
import HeraldStores
import HeraldTrust

/// Compares enrolling, revoking and the trust part of a start with few and with many devices in the ledger, as many of them
/// revoked; and measures a revocation that writes a list of 100,000.
///
/// Its argument is an empty folder. Prints medians in milliseconds, a line of JSON for each ledger.
@main
struct LedgerBench {
    private static let rounds = 41
    private static let listRounds = 5

    static func main() async throws {
        guard CommandLine.arguments.count == 2 else { return print("usage: LedgerBench FOLDER") }
        let folder = CommandLine.arguments[1]
        let few = try await Ledger("\(folder)/few", issued: 2_000, revoked: 1_000)
        let many = try await Ledger("\(folder)/many", issued: 1_000_000, revoked: 1_000)
        var times = (few: Times(), many: Times())
        for _ in 0..<rounds {
            // In turn: disks drift.
            try await few.measure(&times.few)
            try await many.measure(&times.many)
        }
        let list = try await Ledger("\(folder)/list", issued: 200_000, revoked: 100_000)
        var listTimes = Times()
        for _ in 0..<listRounds { try await list.measure(&listTimes) }
        for (ledger, times) in [(few, times.few), (many, times.many), (list, listTimes)] {
            let line = Line(
                issued: ledger.issued,
                revoked: ledger.revoked,
                enroll: median(times.enrolling),
                revoke: median(times.revoking),
                start: median(times.starting)
            )
            print(String(decoding: try JSONEncoder().encode(line), as: UTF8.self))
        }
    }

    private static func median(_ times: [Double]) -> Double {
        times.isEmpty ? 0 : times.sorted()[times.count / 2]
    }
}

/// A line of output: the medians of one ledger, in milliseconds.
private struct Line: Encodable {
    let issued, revoked: Int
    let enroll, revoke, start: Double
}

private struct Times {
    var enrolling: [Double] = []
    var revoking: [Double] = []
    var starting: [Double] = []
}

/// A data folder whose ledger has many devices.
private struct Ledger {
    let issued: Int
    let revoked: Int
    private let data: String
    private let folder: TrustFolder
    private let now = WallTime(seconds: 1_900_000_000)

    init(_ data: String, issued: Int, revoked: Int) async throws {
        self.data = data
        self.issued = issued
        self.revoked = revoked
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
        _ = try await Ledger.open(data, now)
        try Ledger.fill(TrustLayout(data: data).ledger, issued: issued, revoked: revoked, now)
        // Publishes the list.
        folder = try await Ledger.open(data, now)
    }

    /// Enrolls a device, revokes it, and starts.
    func measure(_ times: inout Times) async throws {
        var start = ContinuousClock.now
        let device = try await folder.devices.enroll(name: nil, now: now).record.id
        times.enrolling.append((ContinuousClock.now - start) / .milliseconds(1))
        start = .now
        try await folder.devices.revoke(device.name, now: now)
        times.revoking.append((ContinuousClock.now - start) / .milliseconds(1))
        start = .now
        _ = try await TrustService(folder: try await Ledger.open(data, now))
        times.starting.append((ContinuousClock.now - start) / .milliseconds(1))
    }

    private static func open(_ data: String, _ now: WallTime) async throws -> TrustFolder {
        try await TrustFolder.create(at: data, store: TrustDatabase.open, now: now)
    }

    private static func fill(_ path: String, issued: Int, revoked: Int, _ now: WallTime) throws {
        let time = now.milliseconds
        try DatabaseQueue(path: path).write { database in
            let device = try database.makeStatement(
                sql: "INSERT INTO device (number, id, created, revoked) VALUES (?, ?, ?, ?)"
            )
            let certificate = try database.makeStatement(sql: "INSERT INTO device_certificate VALUES (?, 0, ?, ?)")
            for number in 1...max(1, issued) {
                let id = String(UInt64.random(in: .min ... .max), radix: 36)
                try device.execute(arguments: [number, "d\(id)", time, number <= revoked ? time : nil])
                let serial = "40" + String(format: "%016lx%014lx", UInt64.random(in: .min ... .max), number)
                try certificate.execute(arguments: [number, serial, time + 31_536_000_000])
            }
        }
    }
}
