/// The languages that a user prefers, best first, as BCP 47 tags.
struct ChatLanguages: Sendable {
    static let rule = "languages must be 1 to 20 tags like de-CH, with commas between them"
    private static let mostTags = 20
    private static let longestTag = 35

    let tags: [String]

    /// Reads `de-CH,en`.
    init?(_ text: String) {
        let tags = text.split(separator: ",", omittingEmptySubsequences: false).map { tag in
            tag.split(separator: " ").joined(separator: " ")
        }
        let isTag = { (tag: String) in
            (1...Self.longestTag).contains(tag.utf8.count)
                && tag.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        }
        guard tags.count <= Self.mostTags, tags.allSatisfy(isTag) else { return nil }
        self.tags = tags
    }

    /// The tags, as the relay's table `devices` has them.
    var text: String { tags.joined(separator: ",") }

    /// The best of the languages that there are.
    ///
    /// Each is looked up with fewer and fewer subtags (RFC 4647 §3.4).
    func pick(from available: some Collection<String>) -> String? {
        for tag in tags {
            var subtags = tag.lowercased().split(separator: "-")
            while !subtags.isEmpty {
                let range = subtags.joined(separator: "-")
                if let found = available.first(where: { $0.lowercased() == range }) { return found }
                subtags.removeLast()
            }
        }
        return nil
    }
}

/// The fixed words of a notification, which the server writes in the receiver's language.
enum ChatWords {
    private static let titles = ["de": "Neue Nachricht", "en": "New message"]

    /// The title of an alert; in English if no word of the receiver's languages is known.
    static func title(_ languages: ChatLanguages?) -> String {
        languages?.pick(from: titles.keys).flatMap { titles[$0] } ?? "New message"
    }
}
