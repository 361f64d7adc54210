import Crypto
package import Foundation
import HeraldModel

/// A part of the trust that the nodes of a cluster share.
///
/// Everything that a service issued, and every decision of its operators, is a fact of its own, so that changes at different
/// nodes rarely touch the same one. Facts are merged (``merge(log:own:)``), and never removed.
package enum SharedFact: Hashable, Sendable, Codable {
    case file(SharedFile)
    case tokenKeys(TokenKeyRing.Document)
    case providerKey(ProviderKeyRecord)
    case certificate(SharedCertificate)
    case device(SharedDevice)
    case invitation(SharedInvitation)
    case topic(SharedTopic)

    package var key: SharedKey {
        switch self {
        case .file(let file): SharedKey(.file, file.name.rawValue)
        case .tokenKeys: .tokenKeys
        case .providerKey(let key): SharedKey(.providerKey, key.id)
        case .certificate(let certificate): SharedKey(.certificate, certificate.id)
        case .device(let device): SharedKey(.device, device.id)
        case .invitation(let invitation): SharedKey(.invitation, invitation.id)
        case .topic(let topic): SharedKey(.topic, topic.topic)
        }
    }
}

/// The name of a shared fact.
package struct SharedKey: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case file
        case tokenKeys = "token-keys"
        case providerKey = "provider-key"
        case certificate
        case device
        case invitation
        case topic

        /// Whether the ledger has these facts; if not, files have them.
        package var isOfLedger: Bool {
            switch self {
            case .file, .tokenKeys, .providerKey: false
            case .certificate, .device, .invitation, .topic: true
            }
        }
    }

    package static let tokenKeys = SharedKey(.tokenKeys, "all")

    package let kind: Kind
    /// The fact's identifier within its kind.
    package let name: String

    package init(_ kind: Kind, _ name: String) {
        self.kind = kind
        self.name = name
    }

    /// The key as two parts of a subject: the kind, and a hash of the name, which may be too long for a subject.
    package var subject: String {
        switch kind {
        case .file, .tokenKeys: return "\(kind.rawValue).\(name)"
        default:
            let hash = SHA256.hash(data: Array(name.utf8)).prefix(16)
            return "\(kind.rawValue)." + Hex.text(hash)
        }
    }
}

extension SharedFact {
    /// Reads what ``encoded()`` wrote; nil for anything else.
    package init?(encoded: [UInt8]) {
        guard let fact = try? JSONDecoder().decode(SharedFact.self, from: Data(encoded)) else { return nil }
        self = fact
    }

    package func encoded() throws -> [UInt8] {
        Array(try JSONEncoder().encode(self))
    }
}

/// A file that is the same in the folders of all nodes.
package struct SharedFile: Hashable, Sendable, Codable {
    package enum Name: String, Hashable, Sendable, Codable, CaseIterable {
        case root
        case providerAuthority = "provider-authority"
        case deviceAuthority = "device-authority"
        /// The certificate that clients trust.
        case authority = "ca"
        case announcementKey = "announcement-key"
        /// The newest announcement to devices.
        case announcement
        // Shared only if the key of their authority is kept elsewhere; if not, each node signs its own list.
        case providerList = "provider-crl"
        case deviceList = "device-crl"
    }

    package let name: Name
    /// Rises with each replacement.
    package let revision: UInt64
    package let content: Data

    /// The longest content, in bytes: as text in a message it stays below NATS's limit of 1 MiB.
    package static let maximumBytes = 700_000
}

/// A provider's certificate, as nodes share it.
package struct SharedCertificate: Hashable, Sendable, Codable {
    package let id: String
    package let serial: String
    package let team: String?
    /// Names with blanks between.
    package let topics: String
    /// Names with blanks between.
    package let environments: String
    /// Milliseconds since 1970, like all times of facts.
    package let created: Int64
    package let expires: Int64
    package var revoked: Int64?

    /// - Parameter certificate: Not a key, which is a fact of its own.
    package init?(_ certificate: Credential) {
        guard let serial = certificate.serial, let expires = certificate.expires else { return nil }
        id = certificate.id
        self.serial = serial
        team = certificate.team
        topics = certificate.topics.map(\.name).joined(separator: " ")
        environments = certificate.environments.map(\.rawValue).sorted().joined(separator: " ")
        created = certificate.created.milliseconds
        self.expires = expires.milliseconds
        revoked = certificate.revoked?.milliseconds
    }
}

/// A device with all its certificates, as nodes share it.
package struct SharedDevice: Hashable, Sendable, Codable {
    package struct Certificate: Hashable, Sendable, Codable {
        package let serial: String
        package let expires: Int64
    }

    package let id: String
    package let name: String?
    package let created: Int64
    package var revoked: Int64?
    package let invitation: String?
    /// As ``DeviceLabels/lines``.
    package private(set) var labels: String
    package private(set) var labelsRevision: Int64
    /// As ``EnrolledDevice/announcement``.
    package private(set) var announcement: Int64
    /// As ``EnrolledDevice/seen``.
    package var seen: Int64?
    /// As ``EnrolledDevice/kept``.
    package private(set) var kept: Data?
    package private(set) var keptRevision: Int64
    /// By their expiry.
    package private(set) var certificates: [Certificate] = []

    package init(_ device: EnrolledDevice) {
        id = device.id.name
        name = device.name
        created = device.created.milliseconds
        revoked = device.revoked?.milliseconds
        invitation = device.invitation
        labels = device.labels.lines
        labelsRevision = device.labels.revision
        announcement = device.announcement
        seen = device.seen?.milliseconds
        kept = device.kept.certificate.map { Data($0) }
        keptRevision = device.kept.revision
        add(device.certificates.map { Certificate(serial: $0.serial, expires: $0.expires.milliseconds) })
    }

    /// Takes another node's labels and announcement if they are newer.
    mutating func take(_ other: SharedDevice) {
        // A device's own word counts more than that of the operator, which is negative.
        announcement =
            max(announcement, other.announcement) > 0
            ? max(announcement, other.announcement) : min(announcement, other.announcement)
        guard other.labelsRevision > labelsRevision else { return }
        (labels, labelsRevision) = (other.labels, other.labelsRevision)
    }

    /// Takes the certificate that another node keeps if it is newer.
    mutating func take(keptOf other: SharedDevice) {
        guard other.keptRevision > keptRevision else { return }
        (kept, keptRevision) = (other.kept, other.keptRevision)
    }

    mutating func add(_ others: [Certificate]) {
        certificates = Set(certificates + others).sorted { ($0.expires, $0.serial) < ($1.expires, $1.serial) }
    }
}

/// An invitation without its code, as nodes share it.
package struct SharedInvitation: Hashable, Sendable, Codable {
    package struct Use: Hashable, Sendable, Codable {
        package let device: String
        package let at: Int64

        package init(device: String, at: Int64) {
            self.device = device
            self.at = at
        }
    }

    package let id: String
    package let name: String?
    package let device: String?
    /// As ``DeviceLabels/lines``.
    package let labels: String
    package let digest: Data
    package let created: Int64
    package let expires: Int64
    package let uses: Int
    package var taken: Int
    /// The newest uses, oldest first.
    package var recent: [Use]
    package var withdrawn: Int64?

    package init(_ invitation: Invitation) {
        id = invitation.id
        name = invitation.name
        device = invitation.device?.name
        labels = DeviceLabels.lines(invitation.labels)
        digest = Data(invitation.digest)
        created = invitation.created.milliseconds
        expires = invitation.expires.milliseconds
        uses = invitation.uses
        taken = invitation.taken
        recent = invitation.recent.map { Use(device: $0.device.name, at: $0.at.milliseconds) }
        withdrawn = invitation.withdrawn?.milliseconds
    }
}

/// A topic and the team that owns it, as nodes share them.
package struct SharedTopic: Hashable, Sendable, Codable {
    package struct Owner: Hashable, Sendable, Codable {
        package let team: String
        package let origin: TopicClaim.Origin
        package let since: Int64

        package init(team: String, origin: TopicClaim.Origin, since: Int64) {
            self.team = team
            self.origin = origin
            self.since = since
        }
    }

    package let topic: String
    /// Rises with each change of the owner.
    package let revision: Int64
    /// nil since the owner was released.
    package let owner: Owner?

    package init(topic: String, revision: Int64, owner: Owner?) {
        self.topic = topic
        self.revision = revision
        self.owner = owner
    }
}
