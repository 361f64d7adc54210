package import HeraldModel

/// Columns of `push_queue` that other programs write, and the maximum length that is read.
///
/// The raw value is the position in ``QueueRow``.
enum QueueColumn: Int, CaseIterable {
    case deviceToken
    case topic
    case payload
    case priority
    case expiration
    case collapseID
    case pushType
    case sendAfter
    case giveUpAt
    case environment
    case service
    case userName
    case template
    case parameters
    case timeQueued

    /// A row for each column, in the order of the cases.
    private static let rows: [(name: String, fault: RowReason)] = [
        ("device_token", .badDeviceToken),
        ("topic", .badTopic),
        ("payload", .badPayload),
        ("priority", .badPriority),
        ("expiration", .badExpirationDate),
        ("collapse_id", .badCollapseID),
        ("push_type", .invalidPushType),
        ("send_after", .badSendAfter),
        ("give_up_at", .badGiveUpAt),
        ("environment", .badEnvironment),
        ("service", .badService),
        ("user_name", .badUserName),
        ("template", .badTemplate),
        ("parameters", .badParameters),
        ("time_queued", .badTimeQueued),
    ]

    /// Name in the table.
    var name: String { Self.rows[rawValue].name }
    /// The reason for refusing a row whose value in the column cannot be used.
    var fault: RowReason { Self.rows[rawValue].fault }
    /// Whether it is a time in both databases.
    var isTime: Bool { self == .sendAfter || self == .giveUpAt || self == .timeQueued }

    /// Maximum length in bytes; the relay refuses a longer value without reading it.
    var limit: Int {
        switch self {
        // Each of the tokens with its quotes, a comma and a few spaces.
        case .deviceToken: RowReader.maximumTokens * (2 * PushToken.maximumByteCount + 8)
        case .payload: PushType.allCases.map(\.maximumPayloadBytes).max() ?? 5120
        case .parameters: 16 << 10
        default: 512
        }
    }
}

/// A claimed row of the queue; other programs wrote its columns, which are not validated yet.
package struct QueueRow: Sendable, Identifiable {
    package let id: Int64
    /// The `apns-id` of every attempt.
    package let apnsID: String?
    /// Whether it may have been sent before, by a relay that stopped before it recorded the outcome.
    package internal(set) var isUncertain: Bool
    /// Number of journal lookups since then without a result.
    package var lookups = 0
    /// Number of attempts without a final answer.
    package let attempts: Int
    /// The row for many tokens of which this is a part.
    package let parent: Int64?
    /// The entry of its token in `devices`.
    package internal(set) var device: RelayDevice?
    let values: ArraySlice<SQLValue>
    /// The database's, for its times.
    var dialect = SQLDialect.sqlite

    /// A count of the relay's own columns, which other programs can write too: within 0 and a million, so that it can grow.
    static func count(_ stored: Int64) -> Int { Int(min(max(stored, 0), 1_000_000)) }

    /// Value of a column; a value over the limit is truncated to one byte more than the limit.
    subscript(column: QueueColumn) -> SQLValue {
        column.rawValue < values.count ? values[values.startIndex + column.rawValue] : .null
    }

    /// Value of a time column; nil for NULL.
    ///
    /// An `expiration` is whole seconds, as the service takes no other time.
    /// - Throws: ``RowError`` for a value that is not a time, and for a time that is too far ahead.
    func moment(_ column: QueueColumn, at now: WallTime) throws(RowError) -> WallTime? {
        let value = self[column]
        guard value != .null else { return nil }
        guard let moment = column.isTime ? dialect.moment(value) : value.int.flatMap({ StoredMoment.read(.int($0)) }),
            moment <= now + StoredMoment.longestWait
        else { throw RowError(column.fault) }
        return moment
    }
}

/// Entry of a token and topic in the table `devices`.
package struct RelayDevice: Hashable, Sendable {
    package var token: String
    package var topic: String
    package var environment: String?
    /// Name of the service that issued the token.
    package var service: String?
    package var userName: String?
    /// Preferred languages, in order of preference.
    package var languages: [String] = []
    package var registered: WallTime?
    /// Whether the app was removed and has not been registered again since; nil if a time of the entry cannot be read.
    package var isDead: Bool? = false
}
