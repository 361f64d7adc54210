import HeraldModel
package import HeraldTrust

/// Lists of a small ledger as a whole, oldest first.
extension DeviceCertificates {
    package func all() async throws -> [EnrolledDevice] {
        let all = try await page(DeviceSelection(limit: 10_000)).items
        return all.sorted { ($0.created, $0.id.name) < ($1.created, $1.id.name) }
    }
}

extension ProviderCredentials {
    package func all() async throws -> [Credential] {
        try await page(after: nil, limit: 10_000).items.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
    }
}

extension Invitations {
    package func all() async throws -> [Invitation] {
        try await page(after: nil, limit: 10_000).items.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
    }
}

extension TrustStore {
    package func devices() async throws -> [EnrolledDevice] { try await devices(DeviceSelection(limit: 10_000)).items }

    package func certificates() async throws -> [Credential] { try await certificates(after: nil, limit: 10_000) }

    package func invitations() async throws -> [Invitation] { try await invitations(after: nil, limit: 10_000) }
}
