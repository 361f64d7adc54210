import HeraldJSON
import HeraldModel
import HeraldTrust

/// The content of certificates and requests, as JSON.
struct CertificateAnswer: Codable, Sendable {
    struct Item: Codable, SnakeCased, Sendable {
        let kind: String
        let subject: String
        let key: String
        let issuer: String?
        let serial: String?
        let notBefore: String?
        let notAfter: String?
        let topics: [String]
        let environments: [String]
        /// Whether a provider may connect with it; nil for a request.
        let accepted: Bool?
        /// The reason why it may not.
        let explanation: String?

        init(_ reading: CertificateReading, _ peers: PeerCertificateCheck, now: WallTime) {
            kind = reading.kind.rawValue
            subject = reading.subject
            key = reading.key
            issuer = reading.issuer
            serial = reading.serial
            notBefore = reading.begins?.rfc3339
            notAfter = reading.ends?.rfc3339
            topics = reading.topics.map(\.name)
            environments = reading.environments.map(\.rawValue)
            guard reading.kind == .certificate else {
                (accepted, explanation) = (nil, nil)
                return
            }
            switch peers.provider(certificate: reading.der, at: now) {
            case .success: (accepted, explanation) = (true, nil)
            case .failure(let refusal): (accepted, explanation) = (false, refusal.message)
            }
        }
    }

    let items: [Item]
}
