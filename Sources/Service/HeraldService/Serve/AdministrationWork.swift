package import HeraldConsole
import HeraldIdentity
import HeraldModel
import HeraldTrust

// The work of each request of the admin API.
extension AdminAPI {
    /// The rows of a service.
    package static let all = rows + tools + control
}

extension ServiceAdministration {
    /// Registers the work of the requests about this service, its clock and its drills.
    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.status) { _ in await fullStatus() }
        api.respond(to: AdminAPI.journal, with: assembly.journal.answer)
        api.on(AdminAPI.reloadTrust) { _ in
            try await reloadTrust()
            return await fullStatus()
        }
        api.on(AdminAPI.clock) { _ in clock }
        api.on(AdminAPI.advanceClock) { call in try await advanceClock(by: call.body.duration()) }
        api.on(AdminAPI.acceptClock) { _ in await acceptClock() }
        let drills = assembly.drillOperations
        api.on(AdminAPI.drills) { _ in await drills.allEntries() }
        api.on(AdminAPI.startDrill) { call in try await drills.start(call.body) }
        api.on(AdminAPI.stopDrills) { _ in try await drills.stopAll() }
        api.on(AdminAPI.stopDrill) { call in try await drills.stop(call.path(AdminAPI.drill)) }
        api.on(AdminAPI.renewDrill) { call in try await drills.renew(call.path(AdminAPI.drill)) }
        registerFleet(&api)
        registerApps(&api)
        registerControl(&api)
    }

    private func registerFleet(_ api: inout AdminWork) {
        api.on(AdminAPI.devices) { call in
            let page = try call.page()
            var selection = DeviceSelection(after: page.after, limit: page.limit)
            selection.text = try call(AdminAPI.deviceSearch)
            selection.labels = try call.all(AdminAPI.label)
            selection.isUnused = try call(AdminAPI.unusedDevices) ?? false
            if try call(AdminAPI.unready) ?? false { selection.lacking = assembly.trust.announcement?.content.complete }
            let days = try call(AdminAPI.offlineDays)
            return try await devices(selection, connected: try call(AdminAPI.connected), offlineDays: days)
        }
        api.on(AdminAPI.announcement) { _ in try await announcement() }
        api.on(AdminAPI.renewAnnouncement) { _ in try await renewAnnouncement() }
        api.on(AdminAPI.tellByHand) { call in
            try await tellByHand(try call(AdminAPI.toldDevice), labels: try call.all(AdminAPI.label))
        }
        api.on(AdminAPI.device) { call in try await device(call.path(Ask.id)) }
        api.on(AdminAPI.setLabels) { call in try await setLabels(call.body.labels, of: call.path(Ask.id)) }
        api.on(AdminAPI.revokeDevice) { call in try await revokeDevice(call.path(Ask.id)) }
        api.on(AdminAPI.disconnectDevice) { call in
            try await disconnectDevice(call.path(Ask.id), staysAway: try call(AdminAPI.staysAway) ?? false)
        }
        api.on(AdminAPI.deviceToken) { call in
            let (topic, environment) = (try call.path(Ask.topic), try call(Ask.environment))
            return try await token(of: topic, in: environment, on: try call.path(Ask.id))
        }
        api.on(AdminAPI.invitations) { call in try await invitations(call.page()) }
        api.on(AdminAPI.invite) { call in try await invite(call.body) }
        api.on(AdminAPI.withdrawInvitation) { call in try await withdrawInvitation(call.path(Ask.id)) }
    }

    private func registerApps(_ api: inout AdminWork) {
        api.on(AdminAPI.credentials) { call in try await credentials(call.page()) }
        api.on(AdminAPI.credential) { call in try await credential(call.path(Ask.id)) }
        api.on(AdminAPI.issueCertificate) { call in try await issueCertificate(call.body) }
        api.on(AdminAPI.addKey) { call in try await addKey(call.body) }
        api.on(AdminAPI.revokeCredential) { call in try await revokeCredential(call.path(Ask.id)) }
        api.on(AdminAPI.apps) { call in
            let (topic, page) = (try call(Ask.topic), try call.page())
            return try await apps(of: topic, onlyUnused: try call(AdminAPI.unused) ?? false, page)
        }
        api.on(AdminAPI.appTokens) { call in
            let page = try call.page()
            var selection = DeviceSelection(after: page.after, limit: page.limit)
            selection.labels = try call.all(AdminAPI.label)
            return try await tokens(of: try call.path(Ask.topic), in: try call(AdminAPI.tokenEnvironment), selection)
        }
        api.on(AdminAPI.forgetApp) { call in
            try await forgetApp(try call.path(Ask.topic), in: try call(Ask.environment))
        }
        api.on(AdminAPI.channels) { call in try await channels(of: try call(Ask.topic), call.page()) }
        api.registerChannels(find: channel, make: makeChannel, delete: deleteChannel)
    }
}
