package import HeraldModel

/// A provider, as its certificate names it.
///
/// Made by ``PeerVerifier`` only.
package struct ProviderCertificateIdentity: Hashable, Sendable {
    /// The certificate's serial number, lower-case hex.
    package let serial: String
    /// The team (subject OU), where there is one.
    package let team: String?
    /// The topics it may send to: those of the topics extension, else the subject's UID.
    package let topics: Set<Topic>
    /// The topic of a request that names none; nil where the certificate carries several (`MissingTopic`).
    package let defaultTopic: Topic?
    /// The topic of the subject's UID; nil where that names none of ``topics``.
    ///
    /// The binary interface, which has no place for a topic, sends to it however many there are.
    package let subjectTopic: Topic?
    package let environments: Set<PushEnvironment>
    package let expires: WallTime

    package init(
        serial: String,
        team: String?,
        topics: Set<Topic>,
        defaultTopic: Topic?,
        subjectTopic: Topic?,
        environments: Set<PushEnvironment>,
        expires: WallTime
    ) {
        self.serial = serial
        self.team = team
        self.topics = topics
        self.defaultTopic = defaultTopic
        self.subjectTopic = subjectTopic
        self.environments = environments
        self.expires = expires
    }
}

/// A device, as its certificate names it.
///
/// Made by ``PeerVerifier`` only.
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
