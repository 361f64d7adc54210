import Foundation
import HTTPTypes
import HeraldJSON
package import HeraldModel

// Rows of devices, invitations, credentials, apps and channels.
extension AdminAPI {
    static let fleetRows: [OperationRow] = [
        devices.row, device.row, setLabels.row, revokeDevice.row, disconnectDevice.row, deviceToken.row,
        announcement.row, renewAnnouncement.row, tellByHand.row, invitations.row, invite.row, withdrawInvitation.row,
        credentials.row, credential.row, issueCertificate.row, addKey.row, revokeCredential.row, reloadTrust.row,
        apps.row, forgetApp.row, appTokens.row, channels.row, makeChannel.row, deleteChannel.row,
    ]

    package static let devices = AdminOperation<NoContent, Page<DeviceEntry>>(
        .get,
        "devices",
        takes: [deviceSearch, connected, label, offlineDays, unusedDevices, unready] + Ask.page,
        role: .viewer,
        says: "The enrolled devices, including revoked ones.",
        answer: "The devices, by identifier. A part may have fewer than `limit`, or none, before the end."
    )
    package static let deviceSearch = Parameter<String>("q", "Part of a name, an identifier or a label: `room=hall`.")
    package static let connected = Parameter<Bool>(
        "connected",
        "Whether the devices are connected now, to any node; without it, all. `false` leaves out revoked ones."
    )

    package static let label = Parameter<LabelFilter>(
        labels: "label",
        most: 16,
        "A label that the devices have: `room=hall`, or `room` with any value."
    )
    package static let offlineDays = Parameter<Int>(
        "offline_days",
        1...3650,
        """
        Only devices that are not connected, and that no node has seen for so many days. One that never connected counts \
        from its creation, a revoked one is left out.
        """
    )
    package static let unusedDevices = Parameter<Bool>(
        "unused",
        "Whether only devices are listed that have never connected and are not revoked."
    )
    package static let unready = Parameter<Bool>(
        "unready",
        "Whether only devices are listed that do not know every announced authority and address of the service."
    )

    package static let announcement = AdminOperation<NoContent, AnnouncementEntry>(
        .get,
        "announcement",
        role: .viewer,
        says: "What devices are told of the service's authorities and addresses, and how many of them know it.",
        answer: "The newest announcement.",
        fails: [404]
    )
    package static let renewAnnouncement = AdminOperation<NoContent, AnnouncementEntry>(
        .post,
        "announcement/renew",
        role: .admin,
        says: "Signs the announcement anew, so that devices with a newer one of a lost service take it.",
        answer: "The announcement.",
        fails: [409]
    )

    package static let tellByHand = AdminOperation<NoContent, AnnouncementEntry>(
        .post,
        "announcement/told",
        takes: [toldDevice, label],
        role: .admin,
        says: "Records that a device, or those with labels, were told by hand everything that is announced.",
        answer: "The announcement.",
        more: "It is for devices that do not follow announcements. One that adds something makes them silent again.",
        fails: [404, 409]
    )
    package static let toldDevice = Parameter<String>("device", "The identifier of the device.")

    package static let device = AdminOperation<NoContent, DeviceEntry>(
        .get,
        "devices/{id}",
        role: .viewer,
        says: "A device with its apps, its connection and the number of notifications that wait.",
        answer: "The device.",
        fails: [404]
    )
    package static let setLabels = AdminOperation<LabelsRequest, DeviceEntry>(
        .put,
        "devices/{id}/labels",
        role: .admin,
        says: "Replaces the labels of a device.",
        answer: "The device.",
        fails: [404, 409]
    )
    package static let revokeDevice = AdminOperation<NoContent, DeviceEntry>(
        .post,
        "devices/{id}/revoke",
        role: .admin,
        says: "Revokes a device's certificate for ever. The service closes its connection before the answer.",
        answer: "The device.",
        more: revocation,
        fails: [404, 409]
    )
    package static let disconnectDevice = AdminOperation<NoContent, DeviceEntry>(
        .post,
        "devices/{id}/disconnect",
        takes: [staysAway],
        role: .admin,
        says: "Closes a device's connection. The device comes back at once, unless it is told to stay away.",
        answer: "The device.",
        fails: [404, 409]
    )
    package static let staysAway = Parameter<Bool>(
        "stay_away",
        "Whether the device stays away for a while (DISCONNECT 0x89): Herald's agent for its longest pause."
    )
    package static let deviceToken = AdminOperation<NoContent, DeviceTokenEntry>(
        .post,
        "devices/{id}/apps/{topic}/token",
        takes: [Ask.environment],
        role: .sender,
        says: "Seals the token of a registered app again. Each answer is a valid token.",
        answer: "The token.",
        more: "The environment is needed if the app is registered in both.",
        fails: [404, 409]
    )
    private static let revocation = """
        An error that says `is revoked`: the revocation is stored, but may not be in force yet. The service tries again every \
        second. A repetition gets the error until the revocation is in force, and 409 then.
        """

    package static let invitations = AdminOperation<NoContent, Page<InvitationEntry>>(
        .get,
        "invitations",
        takes: Ask.page,
        role: .admin,
        says: "The invitations for devices, without their codes.",
        answer: "The invitations, by identifier."
    )
    package static let invite = AdminOperation<InvitationRequest, InvitationEntry>(
        .post,
        "invitations",
        role: .admin,
        says: "Makes an invitation for one device or many, or for a known device.",
        answer: "The invitation with its code, which no later answer has.",
        fails: [404, 409]
    )
    package static let withdrawInvitation = AdminOperation<NoContent, InvitationEntry>(
        .delete,
        "invitations/{id}",
        role: .admin,
        says: "Withdraws an invitation. Devices that have used it stay.",
        answer: "The invitation.",
        fails: [404, 409]
    )

    package static let credentials = AdminOperation<NoContent, Page<CredentialEntry>>(
        .get,
        "credentials",
        takes: Ask.page,
        role: .viewer,
        says: "The certificates and keys of providers, including revoked ones.",
        answer: "The credentials, by identifier."
    )
    package static let credential = AdminOperation<NoContent, CredentialEntry>(
        .get,
        "credentials/{id}",
        role: .viewer,
        says: "A certificate or key of a provider.",
        answer: "The credential.",
        fails: [404]
    )
    package static let issueCertificate = AdminOperation<CertificateOrder, IssuedCertificateEntry>(
        .post,
        "credentials/certificate",
        role: .admin,
        says: "Issues a provider's certificate for a request. The private key stays with its owner.",
        answer: "The certificate, which is in force.",
        fails: [409]
    )
    package static let addKey = AdminOperation<KeyOrder, CredentialEntry>(
        .post,
        "credentials/key",
        role: .admin,
        says: "Takes the public half of a provider's key, for tokens that its owner signs.",
        answer: "The key, which is in force. Its identifier is the tokens' `kid`.",
        fails: [409]
    )
    package static let revokeCredential = AdminOperation<NoContent, CredentialEntry>(
        .post,
        "credentials/{id}/revoke",
        role: .admin,
        says: "Revokes a credential for ever. It takes effect on open connections before the answer.",
        answer: "The credential.",
        more: revocation,
        fails: [404, 409]
    )
    package static let reloadTrust = AdminOperation<NoContent, ServiceStatus>(
        .post,
        "trust/reload",
        role: .admin,
        says: "Reloads the trust folder now.",
        answer: "The service.",
        fails: [404, 409]
    )

    package static let apps = AdminOperation<NoContent, Page<AppEntry>>(
        .get,
        "apps",
        takes: [Ask.topic, unused] + Ask.page,
        role: .viewer,
        says: "The app names that the service knows, with their use; and the topics that a team owns and no app has.",
        answer: "The apps, by topic. Topics that no app has are missing if only unused apps are listed."
    )
    package static let unused = Parameter<Bool>("unused", "Whether only apps that can be forgotten are listed.")
    package static let forgetApp = AdminOperation<NoContent, [AppEntry]>(
        .post,
        "apps/{topic}/forget",
        takes: [Ask.environment],
        role: .admin,
        says: "Forgets an app that no device has registered and that has no channel.",
        answer: "The forgotten apps.",
        fails: [404, 409]
    )

    package static let appTokens = AdminOperation<NoContent, Page<DeviceTokenEntry>>(
        .post,
        "apps/{topic}/tokens",
        takes: [label, tokenEnvironment] + Ask.page,
        role: .sender,
        says: "Seals the tokens of an app again, on all devices that have it or on those with labels.",
        answer: "The tokens, by device. A part may have fewer than `limit`, or none, before the end.",
        more: "Revoked devices are left out."
    )
    package static let tokenEnvironment = Parameter<PushEnvironment>(
        "environment",
        "The app's environment; without it, the setting `environment`."
    )

    package static let channels = AdminOperation<NoContent, Page<ChannelEntry>>(
        .get,
        "channels",
        takes: [Ask.topic] + Ask.page,
        role: .viewer,
        says: "Broadcast channels, with counts of their messages.",
        answer: "The channels, by identifier."
    )
    package static let makeChannel = AdminOperation<ChannelOrder, ChannelEntry>(
        .post,
        "channels",
        role: .sender,
        says: "Makes a broadcast channel.",
        answer: "The channel.",
        more: """
            A sender makes channels in the sandbox only, an admin in both environments. Providers reach the channel as one of \
            their own if their team owns the topic: by its use, its credential, or `herald app claim`.
            """,
        status: 201,
        fails: [409]
    )
    package static let deleteChannel = AdminOperation<NoContent, ChannelEntry>(
        .delete,
        "channels/{id}",
        takes: [channel],
        role: .sender,
        says: "Deletes a broadcast channel with its stored message, at a sender's request in the sandbox only.",
        answer: "The last state of the channel.",
        fails: [404, 409]
    )
    /// In one of the alphabets of base64.
    package static let channel = Parameter("id", ["type": "string"], "An identifier, as the list shows it.") {
        text in
        switch ChannelID.read(text.utf8) {
        case .channel(let id): return id
        case .unknown: throw AdminError(.notFound, "there is no channel \(text)")
        case .malformed:
            throw AdminError(.badRequest, "the path must have a channel's identifier in base64: see GET /v1/channels")
        }
    }
}
