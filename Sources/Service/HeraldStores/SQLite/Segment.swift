import HeraldModel

/// Stored notifications in one row: first a fixed-size header of each (``NotificationHeader``), then of each the collapse
/// identifier and the payload.
///
/// The start reads the headers alone. The bytes are valid until the next step of the row's statement.
struct Segment {
    /// The number of bits that ``Tombstones`` has beside its checksum.
    static let countLimit = 48
    /// Target size of a row in bytes: with SQLite's overhead it fills three pages of 4 KiB.
    ///
    /// Larger segments need fewer tombstone rows, but make reads of one notification longer. A notification larger than
    /// this is alone in its segment. Rows of any size can be read.
    static let byteLimit = 12_000

    let count: Int
    private let headers: UnsafeRawBufferPointer
    private let bodies: UnsafeRawBufferPointer

    /// - Returns: nil if the length of `headers` is invalid.
    init?(headers: UnsafeRawBufferPointer, bodies: UnsafeRawBufferPointer) {
        guard let count = Segment.count(headerBytes: headers.count) else { return nil }
        self.count = count
        self.headers = headers
        self.bodies = bodies
    }

    /// The number of notifications whose headers take this many bytes.
    /// - Returns: nil if no segment has headers of this length.
    static func count(headerBytes: Int) -> Int? {
        let (count, rest) = headerBytes.quotientAndRemainder(dividingBy: NotificationHeader.byteCount)
        return rest == 0 && (1...countLimit).contains(count) ? count : nil
    }

    func header(_ index: Int) -> NotificationHeader { NotificationHeader(headers, at: index) }

    /// Whether the bodies have the total length that the headers state.
    var isWhole: Bool { length(0..<count) == bodies.count }

    /// The collapse identifier and payload of one notification, in a segment that is whole.
    func body(_ index: Int) -> UnsafeRawBufferPointer {
        let start = length(0..<index)
        return UnsafeRawBufferPointer(rebasing: bodies[start..<start + header(index).bodyLength])
    }

    /// Reads one notification.
    ///
    /// Its start follows from the lengths of the notifications before it, and from those after it, so that it is found
    /// although another header is damaged. Its own checksum confirms it.
    /// - Returns: nil if it is damaged.
    func notification(_ index: Int) -> Notification? {
        let header = header(index)
        guard header.isValid else { return nil }
        return notification(header, from: length(0..<index))
            ?? notification(header, from: bodies.count - length(index + 1..<count) - header.bodyLength)
    }

    private func notification(_ header: NotificationHeader, from start: Int) -> Notification? {
        guard start >= 0, start + header.bodyLength <= bodies.count else { return nil }
        return header.notification(UnsafeRawBufferPointer(rebasing: bodies[start..<start + header.bodyLength]))
    }

    /// The total length of some bodies, as their headers state it.
    private func length(_ indexes: Range<Int>) -> Int {
        var length = 0
        for index in indexes { length += header(index).bodyLength }
        return length
    }
}
