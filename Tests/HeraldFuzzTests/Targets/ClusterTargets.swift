import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore

extension FuzzTarget {
    static let cluster: [FuzzTarget] = [
        FuzzTarget("log-records", upTo: 2048, logRecord)
    ]

    /// Records of a log, each kind in turn: the first byte selects it.
    @Sendable
    private static func logRecord(_ bytes: [UInt8]) {
        let body = ByteBuffer(bytes: bytes.dropFirst())
        switch bytes.first {
        case 0: checkForm(SlotRecord.self, body)
        case 1: checkForm(ClaimRecord.self, body)
        case 2: checkForm(AppRecord.self, body)
        case 3: checkMeaning(DeviceLogRecord.self, body)
        case 4: checkForm(DeviceRegistrations.self, body)
        case 5: checkForm(BroadcastChannel.self, body)
        case 6: checkForm(BroadcastRecord.self, body)
        case 7: checkForm(ClusterRecord.self, body)
        case 8: checkForm(CounterRecord.self, body)
        default: break
        }
    }

    /// Checks that a record that can be read has no other form.
    private static func checkForm<Record: LogRecord>(_: Record.Type, _ body: ByteBuffer) {
        guard let record = try? Record(body) else { return }
        check(record.body == body, "a record has two forms")
    }

    /// Checks that a record that can be read is written as itself.
    private static func checkMeaning<Record: LogRecord & Equatable>(_: Record.Type, _ body: ByteBuffer) {
        guard let record = try? Record(body) else { return }
        check((try? Record(record.body)) == record, "a record is not read as it was written")
    }
}
