import HeraldJSON
package import HeraldMailbox
package import HeraldModel

/// An enrolled device.
package struct DeviceEntry: Codable, SnakeCased, Hashable, Sendable {
    package let id: String
    package let name: String?
    /// Lower-case hex.
    package let serial: String
    package let created: String
    /// End of the newest certificate.
    package let expires: String
    package let revoked: String?
    /// Whether it is connected now, to this node or another one of the cluster; nil if no service was asked.
    package var connected: Bool?
    package let labels: [String: String]
    /// The invitation that it used.
    package let invitation: String?
    /// Whether it knows what the service announces; nil where that is not known.
    package let announcement: AnnouncementState?
    /// The newest moment at which a node saw it, as far as this one knows; now while it is connected here.
    package var lastSeen: String?
    /// The address of its newest connection, if that was to this node.
    package var lastAddress: String?
    /// Beginning of its connection to this node.
    package var connectedSince: String?
    /// Number of notifications that wait for it; nil in a list.
    package var waiting: Int?
    /// Its apps, removed ones too; nil in a list.
    package var apps: [DeviceAppEntry]?

    package init(
        id: String,
        name: String?,
        serial: String,
        created: String,
        expires: String,
        revoked: String?,
        labels: [String: String] = [:],
        invitation: String? = nil,
        announcement: AnnouncementState? = nil
    ) {
        self.id = id
        self.name = name
        self.serial = serial
        self.created = created
        self.expires = expires
        self.revoked = revoked
        self.labels = labels
        self.invitation = invitation
        self.announcement = announcement
    }
}

/// An app on a device.
package struct DeviceAppEntry: Codable, Hashable, Sendable {
    package let topic: Topic
    package let environment: PushEnvironment
    /// Time of the registration.
    package let registered: String
    /// Time of the removal; nil while the app is registered.
    package let removed: String?
    /// Whether the user wants its notifications.
    package let enabled: Bool
    /// The notification that is stored for it.
    package let waiting: WaitingEntry?

    package init(_ app: App, _ registration: Registration, waiting: WaitingEntry? = nil) {
        topic = app.topic
        environment = app.environment
        registered = registration.registered.rfc3339
        removed = registration.isLive ? nil : registration.ended?.rfc3339
        enabled = registration.isEnabled
        self.waiting = waiting
    }
}

/// A stored notification, without its payload.
package struct WaitingEntry: Codable, SnakeCased, Hashable, Sendable {
    package let id: String
    package let uniqueID: String
    package let received: String
    package let expires: String?

    package init(_ stored: StoredNotification) {
        let notification = stored.notification
        id = notification.id.description
        uniqueID = notification.uniqueID.description
        received = notification.received.rfc3339
        expires = notification.storedUntil?.rfc3339
    }
}

/// The token of an app on a device.
package struct DeviceTokenEntry: Codable, Hashable, Sendable {
    package let device: String
    package let name: String?
    /// Lower-case hex.
    package let token: String
    package let topic: Topic
    package let environment: PushEnvironment

    package init(device: String, name: String?, token: String, topic: Topic, environment: PushEnvironment) {
        (self.device, self.name) = (device, name)
        self.token = token
        self.topic = topic
        self.environment = environment
    }
}

/// New labels of a device.
package struct LabelsRequest: Codable, Hashable, Sendable {
    package let labels: [String: String]
}

/// An invitation for devices.
package struct InvitationEntry: Codable, SnakeCased, Hashable, Sendable {
    package let id: String
    /// The name of the devices; nil to take it from each device's request.
    package let name: String?
    package let state: InvitationState
    package let created: String
    package let expires: String
    package let withdrawn: String?
    /// The number of devices that may use it.
    package let uses: Int
    /// The number of devices that have used it, without those that were revoked and had never connected.
    package let used: Int
    package let lastUsed: String?
    /// The known device that it is for, or the newest one that has used it.
    package let device: String?
    /// The labels of its devices.
    package let labels: [String: String]
    /// Only in the answer that makes it.
    package var code: String?

    package init(
        id: String,
        name: String?,
        state: InvitationState,
        created: String,
        expires: String,
        withdrawn: String?,
        uses: Int,
        used: Int,
        lastUsed: String?,
        device: String?,
        labels: [String: String] = [:]
    ) {
        self.id = id
        self.name = name
        self.state = state
        self.created = created
        self.expires = expires
        self.withdrawn = withdrawn
        self.uses = uses
        self.used = used
        self.lastUsed = lastUsed
        self.device = device
        self.labels = labels
    }
}

/// An order for an invitation.
package struct InvitationRequest: Codable, Hashable, Sendable {
    package let name: String?
    /// Number of devices; one without it.
    package let uses: Int?
    /// Lifetime in days; one without it.
    package let days: Int?
    /// The labels of the devices.
    package let labels: [String: String]?
    /// The known device that it is for.
    package let device: String?
}
