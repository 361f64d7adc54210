import HeraldJSON
import HeraldModel

// Words about members of devices, credentials, apps, channels and access.

extension LinkAnswer: Described {
    package static let members: [String: Fact] = [
        "name": ["minLength": 1, "maxLength": 64],
        "expires": .time,
    ]
}

extension SessionAnswer: Described {
    package static let members: [String: Fact] = [
        "mode": "The setting `console-mode`.",
        "drills": "The least role that starts and stops drills.",
        "page_secret": "For the field `herald-console`; only in the answer to `POST /v1/session`.",
    ]
}

extension SessionEntry: Described {
    package static let members: [String: Fact] = [
        "address": "The IP address that signed in.",
        "opened used ends": .time,
    ]
}

extension TokenRequest: Described {
    package static let members: [String: Fact] = [
        "name": ["minLength": 1, "maxLength": 64],
        "days": ["minimum": 1, "maximum": 3650, "default": 90],
    ]
}

extension TokenEntry: Described {
    package static let members: [String: Fact] = [
        "created expires": .time
    ]
}

extension AuditEntry: Described {
    package static let members: [String: Fact] = [
        "time": .time,
        "who": "The caller's name; absent for an attempt to sign in that failed.",
        "from": "An IP address, or `socket`.",
        "action": ["examples": ["POST /v1/drills/{id}/stop"]],
        "status": "The status of the answer.",
        "more": "Further lines of the same kind since the one before that were not written.",
    ]
}

extension AnnouncementEntry: Described {
    package static let members: [String: Fact] = [
        "version": "Rises with each announcement.",
        "addresses": "The service's addresses, the preferred one first; none if devices keep theirs.",
        "problems": "What is wrong with it, each with what to do.",
    ]
}

extension ServiceEndpoint: Described {
    package static let members: [String: Fact] = [
        "port": "The listener for devices.",
        "activation": "The port of the activation listener.",
    ]
}

extension AnnouncementEntry.Authority: Described {
    package static let members: [String: Fact] = [
        "expires": .time,
        "signs": "Whether it has signed the server's certificate.",
    ]
}

extension AnnouncementCounts: Described {
    package static let members: [String: Fact] = [
        "ready": "They know every announced authority and address.",
        "behind": "They have an earlier announcement.",
        "told": "The operator has told them everything by hand.",
        "silent": "They have never said which announcement they have.",
        "expired": "Their certificates have expired: they need an invitation.",
    ]
}

extension AppEntry: Described {
    package static let members: [String: Fact] = [
        "environment": "Absent if no app has the topic.",
        "devices": "Devices on which it is registered.",
        "unused": "Whether it can be forgotten.",
        "created": .time("Absent if no app has the topic."),
        "device": "The device that brought the name.",
        "team": "The team that brought the name with a channel.",
        "owner": "The team that owns the topic.",
        "owner_since": .time,
        "owner_origin": [
            "enum": ["use", "credential", "operator"],
            "description": "Why the team owns it: its first use, its credential, or the operator.",
        ],
    ]
}

extension ChannelEntry: Described {
    package static let members: [String: Fact] = [
        "id": "`apns-channel-id`.",
        "policy": ["enum": [0, 1], "description": "`message-storage-policy`."],
        "created": .time,
        "subscribers": "Connected devices that are subscribed.",
        "published": "Broadcasts since the service started.",
        "delivered": "Copies that devices acknowledged since the service started.",
        "stored": "Whether a message is stored for devices that subscribe later.",
    ]
}

extension CredentialEntry: Described {
    package static let members: [String: Fact] = [
        "serial": ["pattern": "^[0-9a-f]+$"],
        "created expires revoked last_used": .time,
        "first_used": .time("First request since this service started."),
        "requests": .always("Requests since this service started."),
        "refused": .always("Those of them that were refused."),
    ]
}

extension DeviceEntry: Described {
    package static let members: [String: Fact] = [
        "serial": ["pattern": "^[0-9a-f]+$"],
        "created expires revoked": .time,
        "connected": .always("Whether it is connected now."),
        "invitation": "The invitation that it used.",
        "last_seen": .time("The newest moment at which a node saw it; up to eight hours later if it was another node."),
        "last_address": "The address of its newest connection to this node.",
        "connected_since": .time("Only while it is connected to this node."),
        "waiting": "Notifications that wait for it; not in lists.",
        "apps": "Also removed ones; not in lists.",
    ]
}

extension DeviceAppEntry: Described {
    package static let members: [String: Fact] = [
        "registered": .time,
        "removed": .time("Absent while it is registered."),
        "enabled": "Whether the user wants its notifications.",
        "waiting": "The notification that is stored for it, the newest one.",
    ]
}

extension LabelsRequest: Described {
    package static let members: [String: Fact] = ["labels": labels]

    fileprivate static let labels: Fact = [
        "maxProperties": 16,
        "description": """
        Names and values of 1 to 64 bytes without control characters; a name has no equals sign.
        """,
    ]
}

extension DeviceTokenEntry: Described {
    package static let members: [String: Fact] = [
        "token": ["pattern": "^[0-9a-f]{64}$"]
    ]
}

extension InvitationRequest: Described {
    package static let members: [String: Fact] = [
        "name": [
            "minLength": 1, "description": "The name of the devices; without it, the one of each device's request.",
        ],
        "uses": ["minimum": 1, "maximum": 100000, "default": 1, "description": "Devices that may use it."],
        "days": ["minimum": 1, "maximum": 365, "default": 1],
        "labels": LabelsRequest.labels,
        "device": """
        A known device: it gets a new certificate, and keeps identifier, name, labels and registrations. Neither `name`, \
        `uses` nor `labels` are given then.
        """,
    ]
}

extension InvitationEntry: Described {
    package static let members: [String: Fact] = [
        "created expires withdrawn last_used": .time,
        "uses": ["minimum": 1],
        "used": "Devices that have used it; without those that were revoked and had never connected.",
        "device": "The known device that it is for, or the newest one that has used it.",
        "labels": "The labels of its devices.",
        "code": "Only in the answer that makes it.",
    ]
}

extension CertificateOrder: Described {
    package static let members: [String: Fact] = [
        "csr": "Certificate signing request in PEM.",
        "topics": ["minItems": 1, "maxItems": 400],
        "team": ["pattern": "^[A-Z0-9]{10}$"],
        "environments": ["minItems": 1],
        "days": ["minimum": 1, "maximum": 3650, "default": 365],
    ]
}

extension IssuedCertificateEntry: Described {
    package static let members: [String: Fact] = [
        "certificate": "The certificate and its authority in PEM."
    ]
}

extension KeyOrder: Described {
    package static let members: [String: Fact] = [
        "public_key": "P-256 in PEM.",
        "team": ["pattern": "^[A-Z0-9]{10}$"],
        "topics": ["maxItems": 400, "description": "Without one, the key is the whole team's."],
        "environments": ["minItems": 1],
    ]
}

extension LinkRequest: Described {
    package static let members: [String: Fact] = [
        "name": ["minLength": 1, "maxLength": 64]
    ]
}

extension WaitingEntry: Described {
    package static let members: [String: Fact] = [
        "id": "`apns-id`.",
        "unique_id": "`apns-unique-id`.",
        "received expires": .time,
    ]
}

extension ChannelOrder: Described {
    package static let members: [String: Fact] = [
        "topic": "A bundle identifier.",
        "environment": "Without it, production.",
        "policy": [
            "enum": [0, 1], "description": "`message-storage-policy`: 0 stores nothing, 1 stores the newest message.",
        ],
    ]
}

extension Page: Described {
    package static var members: [String: Fact] { ["next": .orNull("`after` of the next part; null at the end.")] }
}
