/// Names of this machine.
package enum LocalName {
    /// The name to look up for a host: `localhost` for every name below it (RFC 6761 §6.3), which not every resolver
    /// knows.
    package static func resolvable(_ host: String) -> String {
        host.lowercased().hasSuffix(".localhost") ? "localhost" : host
    }
}
