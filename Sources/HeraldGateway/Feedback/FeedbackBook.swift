package import HeraldMailbox
package import HeraldModel
import HeraldTrust

/// Which tokens died, as the feedback service needs to know it: the registry.
package protocol FeedbackBook: Sendable {
    /// Tokens of an app that died and were not registered again, oldest first.
    /// - Throws: If they cannot be read.
    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord]
    /// Forgets exactly these.
    /// - Throws: If they cannot be forgotten; they are reported again then.
    func clearFeedback(_ records: [FeedbackRecord]) async throws
    /// Whether an app has been registered again since its token died.
    func isBack(_ record: FeedbackRecord) -> Bool
}

/// What one reader is told of.
struct FeedbackList: Sendable {
    let book: any FeedbackBook
    let apps: [AppNumber]
    /// The most records.
    let limit: Int

    /// The apps of a certificate's topics that any device ever registered.
    ///
    /// A certificate serves one app with all its kinds of notifications, so a bundle identifier stands for its topics with
    /// a suffix too (`.voip`, `.complication`, …); a topic with a suffix stands for itself.
    static func apps(
        _ certificate: ProviderCertificateIdentity,
        _ environment: PushEnvironment,
        _ admission: Admission
    ) -> [AppNumber] {
        var topics = certificate.topics
        for topic in certificate.topics where TopicKind.kind(of: topic).topicSuffix.isEmpty {
            topics.formUnion(suffixes.compactMap { Topic(topic.name + $0) })
        }
        return topics.sorted { $0.name < $1.name }
            .compactMap { admission.number(of: App(topic: $0, environment: environment)) }
    }

    private static let suffixes = PushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty }

    /// Reads the list, one app after another.
    /// - Throws: If it cannot be read.
    func load() async throws -> [FeedbackRecord] {
        var records: [FeedbackRecord] = []
        for app in apps where records.count < limit {
            records += try await book.feedback(for: app, limit: limit - records.count)
        }
        return records
    }
}
