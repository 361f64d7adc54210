import HeraldJSON

/// The tag of a request, by which a test finds its own among those of others.
///
/// It is the header field `herald-tag`, or the text `tag` in the object `herald` of the payload.
enum CatchTag {
    /// The longest tag, in characters; the rest is cut off.
    static let maximumLength = 64

    static func read(_ field: String?, _ payload: [UInt8]) -> String? {
        let tag = field ?? inPayload(payload)
        guard let tag, !tag.isEmpty else { return nil }
        return String(tag.prefix(maximumLength))
    }

    private static func inPayload(_ payload: [UInt8]) -> String? {
        guard PayloadDrill.isMarked(payload) else { return nil }
        return JSON.Object(payload, rules: .lenient)?["herald"]?.members?["tag"]?.text
    }
}
