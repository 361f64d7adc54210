import HeraldConsole

/// Whether the other nodes of a cluster can learn what was changed at this one.
package struct TrustSharingRoute: Sendable {
    /// The time for the NATS servers: a change is usually there after 0.3 s.
    private static let patience = Duration.seconds(2)

    /// The service's answer.
    package struct State: Hashable, Codable, Sendable {
        /// The reason why they cannot; nil if they can, or if there are none.
        package var problem: String?
    }

    /// Nil for a node that stands alone.
    package let cluster: ClusterNode?

    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.trustSharing) { _ in
            let problem = await cluster?.trust.whyUnshared(after: Self.patience)
            return State(problem: problem.map { cluster?.link.problem ?? $0 })
        }
    }
}
