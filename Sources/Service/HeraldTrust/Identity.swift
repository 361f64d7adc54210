package import HeraldModel

/// The identity of a provider from its certificate.
///
/// Only ``PeerCertificateCheck`` creates it.
package struct ProviderCertificateIdentity: Hashable, Sendable {
    /// The certificate's serial number, lower-case hex.
    package let serial: String
    /// The team (subject OU), if any.
    package let team: String?
    /// Its topics: those of the topics extension, otherwise the subject's UID.
    package let topics: Set<Topic>
    /// The topic of a request without one; nil if the certificate has several (`MissingTopic`).
    package let defaultTopic: Topic?
    /// The topic of the subject's UID; nil if it is not one of ``topics``.
    ///
    /// The binary interface, whose requests have no topic, always sends to it.
    package let subjectTopic: Topic?
    package let environments: Set<PushEnvironment>
    package let expires: WallTime
}

/// The identity of a device from its certificate.
///
/// Only ``PeerCertificateCheck`` creates it.
package struct DeviceIdentity: Hashable, Sendable {
    package let id: DeviceID
    /// The certificate's serial number, lower-case hex.
    package let serial: String
    package let expires: WallTime

    package init(id: DeviceID, serial: String, expires: WallTime) {
        self.id = id
        self.serial = serial
        self.expires = expires
    }
}
