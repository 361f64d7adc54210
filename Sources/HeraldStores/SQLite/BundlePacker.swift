import HeraldModel

/// Gathers notifications into a bundle, up to its limits.
struct BundlePacker {
    private(set) var heads: [UInt64] = []
    private(set) var bodies: [UInt8] = []
    private(set) var count = 0

    /// Whether one with so long a body belongs into the next bundle.
    func isFull(for bodyLength: Int) -> Bool {
        count == Bundle.memberLimit
            || (count > 0 && (count + 1) * Head.byteCount + bodies.count + bodyLength > Bundle.byteLimit)
    }

    mutating func append(_ notification: Notification, sequence: UInt64) {
        Head(notification, sequence: sequence).append(to: &heads)
        if let collapseID = notification.collapseID { bodies.append(contentsOf: collapseID.utf8) }
        bodies.append(contentsOf: notification.payload)
        count += 1
    }

    /// Appends one that was written before, byte for byte.
    mutating func append(_ head: Head, body: UnsafeRawBufferPointer) {
        head.append(to: &heads)
        bodies.append(contentsOf: body)
        count += 1
    }

    mutating func removeAll() {
        heads.removeAll(keepingCapacity: true)
        bodies.removeAll(keepingCapacity: true)
        count = 0
    }
}
