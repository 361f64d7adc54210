import HeraldJSON
import HeraldModel
import HeraldWeb

@testable import HeraldRelay

extension FuzzTarget {
    static let relay: [FuzzTarget] = [
        FuzzTarget("relay-bodies", upTo: 4096, relayBody),
        FuzzTarget("relay-rows", upTo: 4096, relayRow),
        FuzzTarget("relay-templates", upTo: 2048, relayTemplate),
    ]

    private static let now = WallTime(seconds: 1_800_000_000)
    private static let reader = RowReader(longestLife: .seconds(86_400))

    /// Bodies of the relay's API: each accepted one is a row that the relay can read.
    @Sendable
    private static func relayBody(_ bytes: [UInt8]) {
        if let input = try? WebBody.json(bytes, as: DeviceInput.self),
            let entry = try? input.entry(at: now)
        {
            check(PushToken(entry.token) != nil && Topic(entry.topic) != nil, "an entry without token or topic")
        }
        guard let input = try? WebBody.json(bytes, as: PushInput.self),
            let push = try? input.push(at: now)
        else { return }
        for (column, value) in push.values {
            check((value.bytes?.count ?? 0) <= column.limit, "\(column) is longer than what is read")
        }
        plan(QueueColumn.allCases.map { push.values[$0] ?? .null })
    }

    /// Rows that any program may have written: columns of bytes, separated by 0xFF; 0xFE begins a number.
    @Sendable
    private static func relayRow(_ bytes: [UInt8]) {
        plan(
            bytes.split(separator: 0xFF, omittingEmptySubsequences: false).map { column in
                guard let first = column.first else { return .null }
                guard first == 0xFE else { return .bytes(Array(column)) }
                return .int(Int64(bitPattern: column.dropFirst().prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
            }
        )
    }

    private static func plan(_ values: [SQLValue]) {
        let row = QueueRow(
            id: 1,
            apnsID: "f4121b12-e0bf-3266-f079-d9253e98bf49",
            isUncertain: false,
            attempts: 0,
            parent: nil,
            device: nil,
            values: values[...]
        )
        switch reader.plan(row, at: now, payload: Array(#"{"aps":{}}"#.utf8)) {
        case .final(_, let error): check(!error.detail.isEmpty, "the reason \(error.reason)")
        case .fanOut(let tokens): check((1...RowReader.maximumTokens).contains(tokens.count), "\(tokens.count) parts")
        case .wait(let moment): check(moment > now, "waits for the past")
        case .send(let row): check(row.deadline > now, "sends too late")
        case .devices, .template: break
        }
        _ = reader.target(of: row)
    }

    /// Templates: JSON stays JSON, whatever the parameters are.
    @Sendable
    private static func relayTemplate(_ bytes: [UInt8]) {
        let parts = bytes.split(separator: 0xFF, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let parameters = try? TemplateText.parameters(Array(parts[0])),
            let template = String(validating: parts[1], as: UTF8.self)
        else { return }
        guard let filled = try? TemplateText.fill(template, parameters) else { return }
        if case .malformed = PayloadScanner.scan(filled) {
            check(false, "a filled template is not JSON: \(String(decoding: filled, as: UTF8.self))")
        }
    }
}
