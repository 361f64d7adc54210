import HeraldModel

/// Collects notifications for the next segment, up to its limits.
struct SegmentBuilder {
    private(set) var headers: [UInt64] = []
    private(set) var bodies: [UInt8] = []
    private(set) var count = 0

    /// Whether a body of this length belongs into the next segment.
    func isFull(for bodyLength: Int) -> Bool {
        count == Segment.countLimit
            || (count > 0 && (count + 1) * NotificationHeader.byteCount + bodies.count + bodyLength > Segment.byteLimit)
    }

    mutating func append(_ notification: Notification, sequence: UInt64) {
        NotificationHeader(notification, sequence: sequence).append(to: &headers)
        if let collapseID = notification.collapseID { bodies.append(contentsOf: collapseID.text.utf8) }
        bodies.append(contentsOf: notification.payload)
        count += 1
    }

    /// Appends a stored notification of another segment, byte for byte.
    mutating func append(_ header: NotificationHeader, body: UnsafeRawBufferPointer) {
        header.append(to: &headers)
        bodies.append(contentsOf: body)
        count += 1
    }

    mutating func removeAll() {
        headers.removeAll(keepingCapacity: true)
        bodies.removeAll(keepingCapacity: true)
        count = 0
    }
}
