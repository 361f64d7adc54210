import Foundation
import HeraldConsole

/// `/v1/control/trust-sharing`: whether the other nodes of a cluster can learn what was changed at this one.
package struct TrustSharingRoute: Sendable {
    package static let name = "trust-sharing"
    package static let path = "/v1/control/trust-sharing"
    /// The time for the NATS servers: a change is usually there after 0.3 s.
    private static let patience = Duration.seconds(2)

    /// The service's answer.
    package struct State: Hashable, Codable, Sendable {
        /// The reason why they cannot; nil if they can, or if there are none.
        package var problem: String?
    }

    /// Nil for a node that stands alone.
    package let cluster: ClusterNode?

    var route: ControlRoute {
        ControlRoute(TrustSharingRoute.name) { _ in
            let problem = await cluster?.trust.whyUnshared(after: Self.patience)
            return Array(try JSONEncoder().encode(State(problem: problem.map { cluster?.link.problem ?? $0 })))
        }
    }
}
