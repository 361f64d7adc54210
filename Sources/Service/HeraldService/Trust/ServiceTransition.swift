import Foundation
package import HeraldConsole
import HeraldCourier
package import HeraldIdentity
package import HeraldModel
package import HeraldTrust

/// How far the devices have followed what the service announces, and what a certificate would do to them.
package struct ServiceTransition: Sendable {
    package let announcement: Announcement
    /// None, unless they were counted.
    package private(set) var devices = AnnouncementCounts()
    /// The authorities that should be announced.
    private let authorities: [[UInt8]]
    /// The settings; nil if they are not known here.
    private let configuration: ServerConfiguration?
    private let server: ServerCertificate

    /// Reads a trust folder; nil before the first announcement.
    /// - Throws: ``TrustError``.
    init?(_ trust: TrustFolder, _ configuration: ServerConfiguration? = nil) throws {
        guard let announcement = try trust.announcements.newest()?.content else { return nil }
        self.announcement = announcement
        self.configuration = configuration
        authorities = try trust.publicAuthorities()
        server = try trust.serverCertificate()
    }

    /// Reads a trust folder, and counts its devices; nil before the first announcement.
    /// - Throws: ``TrustError``.
    package init?(_ trust: TrustFolder, _ configuration: ServerConfiguration? = nil, now: WallTime) async throws {
        try self.init(trust, configuration)
        devices = try await trust.store.announcementCounts(announcement.complete, now: now)
    }

    /// The faults of the announcement, each with what to do.
    package var problems: [String] {
        var problems = problems(of: server, "the server certificate")
        let addresses = configuration?.announcedAddresses ?? announcement.addresses
        if authorities != announcement.authorities || addresses != announcement.addresses {
            problems.append(
                "devices are not told of the present ca.pem and device-addresses: see to it that trust/announcement.key is "
                    + "there and that all nodes have the same setting, and restart"
            )
        }
        if let place = configuration.flatMap({ HostPort($0.courier.movedTo, defaultPort: 5223) }),
            !announcement.addresses.contains(where: { HostPort(host: $0.host, port: $0.port) == place })
        {
            problems.append(
                "moved-to is \(place), which is not announced, so Herald's agents do not go there: add it to device-addresses"
            )
        }
        return problems
    }

    /// The faults of a certificate for devices that have the announcement, each with what to do.
    private func problems(of certificate: ServerCertificate, _ name: String) -> [String] {
        var problems: [String] = []
        if certificate.authority(among: announcement.authorities) == nil {
            problems.append(
                "\(name) is not signed by an announced authority, so devices refuse it: add its authority to ca.pem"
            )
        }
        let unnamed = announcement.addresses.map(\.host).filter { host in
            ServerName(host).map { !$0.isNamed(in: certificate.names) } ?? true
        }
        if !unnamed.isEmpty {
            problems.append(
                "\(name) does not name \(unnamed.joined(separator: ", ")), which is announced to devices: add it to hostname, "
                    + "or use a certificate that names it"
            )
        }
        return problems
    }

    /// The devices that do not know every announced authority and address.
    package var unready: Int { devices.behind + devices.silent }

    /// Judges a certificate before it becomes the server's.
    /// - Returns: Why devices would be lost, each with what to do; none if the change is safe.
    package func reasons(against next: ServerCertificate) -> [String] {
        let known = server.authority(among: announcement.authorities)
        let isNew = known == nil || next.authority(among: announcement.authorities) != known
        let problems = problems(of: next, "the certificate")
        guard unready > 0, isNew else { return problems }
        return problems + [
            "\(unready) devices do not know every announced authority yet: wait for those that are away, and give the others "
                + "the authority yourself and say so (herald device list --unready, herald device announcement --told ID)"
        ]
    }

    package var entry: AnnouncementEntry {
        let signing = server.authority(among: announcement.authorities)
        return AnnouncementEntry(
            version: announcement.version,
            addresses: announcement.addresses,
            authorities: announcement.authorities.compactMap { der in
                guard let authority = TrustEnds.Authority(der) else { return nil }
                return .init(
                    name: authority.name,
                    expires: authority.expires.rfc3339,
                    signs: der == signing
                )
            },
            devices: devices,
            problems: problems
        )
    }
}
