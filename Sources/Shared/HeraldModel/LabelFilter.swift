/// A label that devices must have, as people write it: `room=hall`, or `room` for any value.
package struct LabelFilter: Hashable, Sendable, CustomStringConvertible {
    package static let rule = "a label like room=hall, or the name of one"

    package let name: String
    /// nil for any value.
    package let value: String?

    /// - Returns: nil for a text without a name, or with an empty value.
    package init?(_ text: String) {
        // Bytes: a character may consist of an equals sign and what follows it.
        let parts = text.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, !first.isEmpty, let name = String(first) else { return nil }
        guard parts.count == 2 else {
            (self.name, value) = (name, nil)
            return
        }
        guard !parts[1].isEmpty, let value = String(parts[1]) else { return nil }
        (self.name, self.value) = (name, value)
    }

    package var description: String { value.map { "\(name)=\($0)" } ?? name }
}
