import HeraldIdentity

/// The labels that people give to a device.
package struct DeviceLabels: Hashable, Sendable {
    /// The most labels of one device.
    package static let maximumCount = 16
    /// The longest name or value of a label, in bytes.
    package static let maximumBytes = 64

    /// Name → value.
    package let all: [String: String]
    /// Rises with each change, so that nodes agree which labels are the newest.
    package let revision: Int64

    package init() { self.init([:]) }

    package init(_ all: [String: String], revision: Int64 = 0) {
        self.all = all
        self.revision = revision
    }

    /// Checks the labels of a request.
    /// - Throws: ``TrustError/Code/invalidArgument``.
    package static func check(_ labels: [String: String]) throws {
        guard labels.count <= maximumCount else {
            throw TrustError(.invalidArgument, "a device has at most \(maximumCount) labels")
        }
        for (name, value) in labels where !isName(name) || !isText(value) {
            throw TrustError(
                .invalidArgument,
                "a label has a name and a value of 1 to \(maximumBytes) bytes without control characters; the name has no `=`"
            )
        }
    }

    private static func isName(_ name: String) -> Bool { isText(name) && !name.utf8.contains(UInt8(ascii: "=")) }

    private static func isText(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= maximumBytes
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// The labels as lines `name=value`, as a store keeps and searches them.
    package var lines: String { DeviceLabels.lines(all) }

    package static func lines(_ labels: [String: String]) -> String {
        labels.map { "\($0)=\($1)" }.sorted().joined(separator: "\n")
    }

    /// Reads what ``lines`` wrote; nil for anything else.
    package init?(lines: String, revision: Int64) {
        var all: [String: String] = [:]
        // Bytes: a character may consist of an equals sign and what follows it.
        for line in lines.utf8.split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1)
            guard parts.count == 2, let name = String(parts[0]), let value = String(parts[1]) else { return nil }
            all[name] = value
        }
        self.init(all, revision: revision)
    }
}
