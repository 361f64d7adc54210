package import HeraldModel
package import HeraldProvider

/// A service, the credential for it, and the apps to send for.
package struct RelayApp: Sendable, Hashable {
    /// Protocol of the service.
    package enum Interface: String, Sendable, Hashable, CaseIterable {
        case http2
        /// The binary interface, for certificates only and for the one topic of the certificate.
        case binary
    }

    /// The journal of a Herald.
    package struct Journal: Sendable, Hashable {
        /// Address of the console, for example `http://127.0.0.1:2190`.
        package let console: String
        /// Path of the file with the token of the admin API; Herald rewrites it at each start.
        package let tokenFile: String

        package init(console: String, tokenFile: String) {
            self.console = console
            self.tokenFile = tokenFile
        }
    }

    /// Name of the service in `devices.service` and `push_queue.service`.
    package var name: String
    /// The topics.
    ///
    /// Each includes those with the suffix of a push type. Empty means every topic.
    ///
    /// The binary interface has exactly one, without suffixes.
    package var topics: [String]
    package var environment: PushEnvironment
    package var service: HostPort
    package var interface = Interface.http2
    package var credential: ProviderCredential
    /// PEM certificates of the authorities that may sign the service's certificate; nil means the system's.
    package var authorities: [UInt8]?
    /// The feedback service, if there is one.
    package var feedback: HostPort?
    package var journal: Journal?
    /// The HTTP proxy to go through, also to the feedback service.
    package var proxy = ProviderProxy.environment

    package init(
        name: String,
        topics: [String],
        environment: PushEnvironment,
        service: HostPort,
        credential: ProviderCredential
    ) {
        self.name = name
        self.topics = topics
        self.environment = environment
        self.service = service
        self.credential = credential
    }

    /// Apple's service for an environment ("Sending notification requests to APNs").
    package static func apple(_ environment: PushEnvironment) -> HostPort {
        HostPort(
            host: environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com",
            port: 443
        )
    }

    /// The topic of rows that name none.
    /// - Returns: The only topic of all apps; nil if they have several, or if one has every topic.
    static func onlyTopic(of apps: [RelayApp]) -> String? {
        let topics = Set(apps.flatMap(\.topics))
        return topics.count == 1 && apps.allSatisfy { !$0.topics.isEmpty } ? topics.first : nil
    }

    /// The name of a topic's circuit breaker of dead tokens.
    func breaker(of topic: String) -> String { "\(topic) (\(environment.rawValue))" }

    func includes(_ topic: Topic) -> Bool {
        guard interface == .http2 else { return topics == [topic.name] }
        return topics.isEmpty
            || topics.contains { own in
                guard topic.name.hasPrefix(own) else { return false }
                let rest = topic.name.dropFirst(own.count)
                return rest.isEmpty || PushType.allCases.contains { $0.topicSuffix == rest }
            }
    }
}
