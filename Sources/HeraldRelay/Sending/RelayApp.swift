package import HeraldModel
import HeraldProvider

/// Apps that the relay sends for: which service, as whom, and what more of it can be asked.
package struct RelayApp: Sendable, Hashable {
    /// How the relay proves who it is.
    package enum Credential: Sendable, Hashable {
        case certificate(pem: [UInt8])
        case key(pem: [UInt8], id: String, team: String)
    }

    /// How the service is spoken to.
    package enum Interface: String, Sendable, Hashable, CaseIterable {
        case http2
        /// The interface of the time before, which knows providers by certificate alone, and sends to the one topic that
        /// this is for.
        case binary
    }

    /// A door of a service.
    package struct Place: Sendable, Hashable, CustomStringConvertible {
        package let host: String
        package let port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// The journal of a Herald, which says what became of a notification.
    package struct Journal: Sendable, Hashable {
        /// The console, like `http://127.0.0.1:2190`.
        package let console: String
        /// The file with the token of its admin API, which every start of that Herald writes anew.
        package let tokenFile: String

        package init(console: String, tokenFile: String) {
            self.console = console
            self.tokenFile = tokenFile
        }
    }

    /// What `devices.service` and `push_queue.service` call the service.
    package var name: String
    /// The topics, each with those that its push types have of it; none: every topic.
    ///
    /// Of the binary interface exactly one, for itself alone.
    package var topics: [String]
    package var environment: PushEnvironment
    package var service: Place
    package var interface = Interface.http2
    package var credential: Credential
    /// The authorities that may vouch for the service, PEM; nil for those of the system.
    package var authorities: [UInt8]?
    /// The feedback service, where there is one.
    package var feedback: Place?
    package var journal: Journal?

    package init(name: String, topics: [String], environment: PushEnvironment, service: Place, credential: Credential) {
        self.name = name
        self.topics = topics
        self.environment = environment
        self.service = service
        self.credential = credential
    }

    /// Apple's own door of an environment ("Sending notification requests to APNs").
    package static func apple(_ environment: PushEnvironment) -> Place {
        Place(
            host: environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com",
            port: 443
        )
    }

    /// Whether it sends for a topic.
    func isFor(_ topic: Topic) -> Bool {
        guard interface == .http2 else { return topics == [topic.name] }
        return topics.isEmpty
            || topics.contains { own in
                guard topic.name.hasPrefix(own) else { return false }
                let rest = topic.name.dropFirst(own.count)
                return rest.isEmpty || PushType.allCases.contains { $0.topicSuffix == rest }
            }
    }
}
