package import HeraldModel

/// The announcement of the service to devices, and how many of them know it.
package struct AnnouncementEntry: Codable, Hashable, Sendable {
    /// An authority that devices trust.
    package struct Authority: Codable, Hashable, Sendable {
        package let name: String
        package let expires: String
        /// Whether it has signed the server's certificate.
        package let signs: Bool

        package init(name: String, expires: String, signs: Bool) {
            self.name = name
            self.expires = expires
            self.signs = signs
        }
    }

    package let version: Int64
    package let addresses: [ServiceEndpoint]
    package let authorities: [Authority]
    package let devices: AnnouncementCounts
    /// Its faults, each with what to do.
    package let problems: [String]

    package init(
        version: Int64,
        addresses: [ServiceEndpoint],
        authorities: [Authority],
        devices: AnnouncementCounts,
        problems: [String]
    ) {
        self.version = version
        self.addresses = addresses
        self.authorities = authorities
        self.devices = devices
        self.problems = problems
    }
}
