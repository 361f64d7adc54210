package import HeraldMailbox
package import HeraldModel
import HeraldTrust

/// The registry's records of dead tokens, as the feedback service uses them.
package protocol FeedbackSource: Sendable {
    /// Learns what all nodes of a cluster know: providers delete the tokens on the list.
    /// - Throws: If the other nodes' registrations cannot be learned.
    func catchUp() async throws
    /// The dead tokens of an app to which a provider has sent, oldest first.
    /// - Throws: If the store cannot read them.
    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord]
    /// Deletes exactly these records.
    /// - Throws: If the store cannot delete them; they are reported again then.
    func clearFeedback(_ records: [FeedbackRecord]) async throws
    /// Whether the app has been registered again since the record.
    func isBack(_ record: FeedbackRecord) -> Bool
}

/// The feedback list of one reader.
struct FeedbackList: Sendable {
    let source: any FeedbackSource
    /// The registered apps of the reader, as they are known when the list is read.
    let apps: @Sendable () -> [AppNumber]
    /// Maximum number of records.
    let limit: Int

    /// The registered apps of a certificate's topics.
    ///
    /// A certificate serves all push types of an app. So a bundle identifier also stands for its topics with a suffix
    /// (`.voip`, `.complication`, …); a topic with a suffix stands for itself.
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

    /// Reads the list, app by app.
    /// - Throws: If the store cannot read it.
    func load() async throws -> [FeedbackRecord] {
        try await source.catchUp()
        var records: [FeedbackRecord] = []
        for app in apps() where records.count < limit {
            records += try await source.feedback(for: app, limit: limit - records.count)
        }
        return records
    }
}
