import HeraldIdentity
package import HeraldModel

/// Changes the owners of topics for the operator.
package struct TopicOwners: Sendable {
    let folder: TrustFolder

    /// Makes a team the owner of topics, with or without the suffix of a push type; all of them or none.
    ///
    /// A team has ten of `A`-`Z` and `0`-`9`. Unless it takes over, a topic of another team is an error.
    /// - Returns: The claims.
    /// - Throws: ``TrustError/Code/invalidArgument``, or a problem of the ledger.
    package func claim(_ topics: [Topic], for team: String, takesOver: Bool, now: WallTime) async throws -> [TopicClaim]
    {
        let claims = topics.map { TopicClaim($0, team: team, origin: .operator, since: now) }
        if !takesOver { try await check(claims) }
        try await folder.store.claim(claims, takesOver: takesOver)
        // Another team may have been faster.
        if !takesOver { try await check(claims) }
        return claims
    }

    /// Ends the ownership of topics; of all or none.
    /// - Returns: The topics without the suffix of a push type, each once.
    /// - Throws: ``TrustError/Code/unknownID`` if no team owns one of them, or a problem of the ledger.
    package func release(_ topics: [Topic]) async throws -> [Topic] {
        var bundles: [Topic] = []
        for bundle in topics.map(TopicScope.bundle) where !bundles.contains(bundle) { bundles.append(bundle) }
        if let unowned = try await folder.store.release(bundles) {
            throw TrustError(.unknownID, "no team owns \(unowned): nothing was changed")
        }
        return bundles
    }

    private func check(_ claims: [TopicClaim]) async throws {
        let present = try await folder.store.topicClaims(after: nil)
        for claim in claims {
            guard let owner = present?.owner(of: claim.topic), owner != claim.team else { continue }
            throw TrustError(
                .invalidArgument,
                "\(claim.topic) belongs to team \(owner): repeat the command with --force if team \(claim.team) gets it"
            )
        }
    }
}
