package import HeraldTrust

/// The parts of a service that come from its trust folder; `herald doctor` makes them, too.
package enum ServiceTrust {
    /// Reads the folder, without changing it.
    /// - Throws: An error that tells the operator what to do.
    package static func load(
        _ folder: TrustFolder,
        _ configuration: ServerConfiguration
    ) async throws -> (TrustService, ListenerContexts) {
        try refusePublicAddress(configuration, folder)
        let service = try await TrustService(
            folder: folder,
            revocationPolicy: configuration.revocations,
            unmarkedEnvironments: configuration.unmarkedEnvironments
        )
        return (service, try ListenerContexts(folder, folder.serverCertificate()))
    }

    /// Refuses a public address for a service under Apple's names.
    private static func refusePublicAddress(_ configuration: ServerConfiguration, _ trust: TrustFolder) throws {
        guard try trust.serverCertificate().namesApple,
            let address = ListenScope.publicAddress(
                on: configuration.host,
                machine: ListenScope.machineAddresses()
            )
        else { return }
        throw CommandError(
            .configuration,
            "the server certificate has Apple's names (`herald init --as-apple`), so the service does not listen on "
                + "\(address), which is public: choose a private address with --host, or another folder with --data"
        )
    }
}
