import Foundation
package import HeraldCluster
import HeraldConsole
import HeraldGateway
import HeraldModel

/// A drill in the cluster's log: each node that hears of it before its end starts it.
struct DrillRecord: LogRecord, Hashable, Codable {
    static let kind: StaticString = "drill"

    /// The slot of a drill for one device token; the token itself is not stored.
    struct Target: Hashable, Codable {
        let device: UInt64
        let app: UInt32
    }

    /// The request without its token; it names the seed.
    let request: DrillRequest
    let target: Target?
    /// The start, or the last renewal; in milliseconds since 1970.
    var started: Int64
    /// The node where it was started.
    let node: String
    /// Whether that node's configuration started it: it is a drill of that node alone.
    let isConfigured: Bool

    init(_ request: DrillRequest, _ drill: Drill, started: WallTime, node: NodeName, isConfigured: Bool) {
        var request = request
        request.token = nil
        request.seed = drill.seed
        self.request = request
        target =
            if case .slot(let slot) = drill.target { Target(device: slot.device.value, app: slot.app.value) } else {
                nil
            }
        self.started = started.milliseconds
        self.node = node.text
        self.isConfigured = isConfigured
    }

    init(fields: inout RecordReader) throws(RecordError) {
        let body = Data(fields.rest())
        self = try fields.valid(try? JSONDecoder().decode(DrillRecord.self, from: body))
    }

    func write(to fields: inout RecordWriter) {
        // Strings and numbers alone: encoding cannot fail.
        if let body = try? JSONEncoder().encode(self) { fields.rest(body) }
    }

    /// The drill.
    /// - Throws: ``DrillMistake`` for a drill that this version of Herald does not have.
    func drill() throws(DrillMistake) -> Drill {
        var drill = try DrillReader.drill(request) { _ in nil }
        if let target {
            drill.target = .slot(Slot(device: DeviceNumber(target.device), app: AppNumber(target.app)))
        }
        return drill
    }

    /// The time since its start, by a clock that may be behind that of its node.
    func age(at now: WallTime) -> Duration { max(.zero, now - WallTime(milliseconds: started)) }
}

extension LogSubject {
    /// The record of a drill.
    package static func drill(_ id: Int) -> LogSubject { .meta("drill.\(id)") }

    /// The records of all drills.
    package static let drills = meta("drill.*")

    /// The number of a drill's subject; nil for every other subject.
    var drillID: Int? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[2] == "drill" else { return nil }
        return Int(parts[3])
    }
}
