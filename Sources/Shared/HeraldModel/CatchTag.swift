/// The tag of a request, by which a test finds its own among those of others.
///
/// It is the header field `herald-tag`, or the text `tag` in the object `herald` of the payload.
package enum CatchTag {
    /// The longest tag, in Unicode scalars; the rest is cut off.
    package static let maximumLength = 64

    /// The tag as it is kept; nil for an empty one.
    package static func kept(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        return String(text.unicodeScalars.prefix(maximumLength))
    }

    /// Whether a text is kept as it is.
    package static func isWhole(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.count <= maximumLength
    }
}
