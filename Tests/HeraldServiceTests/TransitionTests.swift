import Foundation
import HeraldActivation
import HeraldCourier
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTestSupport
import Testing

@testable import HeraldDevice
@testable import HeraldIdentity
@testable import HeraldService
@testable import HeraldTrust

/// Devices that live through changes of the service's authority and address.
extension HeraldServiceTests {
    @Test func `a connected device learns the next authority, and the service knows that it has`() async throws {
        let (configuration, other) = (configuration("moving"), try await TestTrust(hostnames: ["localhost"]))
        let trust = try await open(configuration)
        var activated: DeviceID?
        try await Starting(configuration).run { addresses in
            let (folder, device) = try await activate(in: trust, at: addresses[0])
            let client = try self.client(of: folder)
            var isTold = false
            try await events(of: client) { event in
                switch event {
                case .connected where !isTold:
                    isTold = true
                    try add(other.folder.root, to: trust)
                case .announced(_, let authorities):
                    #expect(authorities == 2)
                    return true
                default: break
                }
                return false
            }
            #expect(try folder.service().announcement == trust.announcements.newest()?.content.version)
            // On the next connection the device says what it has; the service writes it down at the latest when it stops.
            try await events(of: client) { if case .token = $0 { true } else { false } }
            activated = device
        }
        let device = try #require(activated)
        #expect(try await ServiceTransition(trust, now: .present)?.devices.ready == 1)
        #expect(
            try await trust.devices.device(device.name).announcement == trust.announcements.newest()?.content.version
        )
    }

    @Test func `a device that was off during the whole change of the authority finds back`() async throws {
        let configuration = configuration("changed")
        let trust = try await open(configuration)
        let other = try await TestTrust(hostnames: ["localhost"])
        let device = try await activated(configuration, trust)
        // Both files at once: the device trusts nothing of it.
        try replaceServer(of: trust, by: other)
        try await Starting(configuration).run { addresses in
            try device.find(addresses[0])
            let client = try self.client(of: device)
            var seen: [DeviceEvent] = []
            try await events(of: client) { event in
                seen.append(event)
                return event == .connected
            }
            #expect(seen.contains { if case .announced(_, 1) = $0 { true } else { false } }, "\(seen)")
            #expect(try device.authorities() == DeviceFolder.pem([other.folder.root.der]))
        }
    }

    @Test func `who has stolen the server's key cannot move a device`() async throws {
        let configuration = configuration("stolen")
        let trust = try await open(configuration)
        let device = try await activated(configuration, trust)
        // The thief has a service of his own, with the stolen certificate, and announces himself.
        var thief = self.configuration("thief")
        let stolen = try await open(thief)
        try TrustFile.write(try TrustFile.read(trust.layout.server, .secret), to: stolen.layout.server, .secret)
        try TrustFile.write(try TrustFile.read(trust.layout.authority, .open), to: stolen.layout.authority, .open)
        thief.deviceAddresses = [.init(host: "thief.example.com", port: 1, activation: 1)]
        try await Starting(thief).run { addresses in
            // The thief has the service's name, too.
            try device.find(addresses[0])
            let before = try device.service()
            let announced = try #require(try stolen.announcements.newest()).text
            #expect(throws: EnrollmentError(.untrusted, "")) { try device.take(announced) }
            // Not even where the device asks without trusting anybody.
            let heard = try await device.refreshAnnouncement(timeout: .patience)
            #expect(heard == nil)
            #expect(try device.service() == before)
        }
    }

    @Test func `a device tries its addresses in order, for connections and renewals`() async throws {
        let configuration = configuration("addresses")
        let trust = try await open(configuration)
        let device = try await activated(configuration, trust)
        try await Starting(configuration).run { addresses in
            try device.find(addresses[0])
            let present = try #require(try device.service().addresses.first)
            let client = try self.client(of: device)
            var isTold = false
            try await events(of: client) { event in
                if event == .connected, !isTold {
                    isTold = true
                    // Nothing answers at the first.
                    try announce([("localhost", 1, 1), (present.host, present.port, present.activation)], in: trust)
                }
                if case .announced(let all, _) = event { return all.count == 2 }
                return false
            }
            try await events(of: client) { $0 == .connected }
            #expect(try await device.renew(timeout: .patience).id == client.configuration.credential.id)
            #expect(try device.service().addresses.map(\.port) == [1, present.port])
        }
    }

    @Test func `a service that has moved sends devices to its new address, if it has announced that`() async throws {
        var (old, new) = (configuration("old"), configuration("new"))
        let trust = try await open(old)
        let device = try await activated(old, trust)
        // The new service is a copy of the old one.
        try FileManager.default.copyItem(atPath: old.data, toPath: new.data)
        new.consolePort = 0
        try await Starting(new).run { addresses in
            let place = try #require(addresses[0].device)
            let activation = try #require(addresses[0].activation)
            old.courier.movedTo = "localhost:\(place)"
            let client = try self.client(of: device)
            try await Starting(old).run { addresses in
                try device.find(addresses[0])
                let before = try device.service().addresses
                var reason = ""
                try await events(of: client) { event in
                    if case .disconnected(let words, _) = event { reason = words }
                    return !reason.isEmpty
                }
                #expect(reason.contains("has moved to localhost:\(place)"))
                #expect(try device.service().addresses == before)
                let present = try #require(before.first)
                try announce(
                    [(present.host, present.port, present.activation), ("localhost", place, activation)],
                    in: trust
                )
                // It learns the address on the way that needs no connection of a device.
                try await events(of: client) { event in
                    if case .disconnected = event {
                        _ = try? device.take(try #require(try trust.announcements.newest()).text)
                    }
                    return event == .connected
                }
            }
        }
    }

    // MARK: - Parts

    private func open(_ configuration: ServerConfiguration) async throws -> TrustFolder {
        let folder = try DataFolder.open(configuration.data, mayCreate: true)
        return try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: ServiceClock().now())
    }

    /// Starts a service, activates a device, and stops the service.
    private func activated(_ configuration: ServerConfiguration, _ trust: TrustFolder) async throws -> DeviceFolder {
        var folder: DeviceFolder?
        try await Starting(configuration).run { folder = try await activate(in: trust, at: $0[0]).0 }
        return try #require(folder)
    }

    /// Announces addresses, each a host with the port for devices and that of activation.
    private func announce(_ addresses: [(String, Int, Int)], in trust: TrustFolder) throws {
        let addresses = addresses.map { ServiceEndpoint(host: $0.0, port: $0.1, activation: $0.2) }
        try trust.announcements.update(addresses: addresses, now: ServiceClock().now())
    }

    /// Activates a device with an invitation.
    private func activate(
        in trust: TrustFolder,
        at addresses: ListeningAddresses
    ) async throws -> (DeviceFolder, DeviceID) {
        let invitations = try await trust.invitations.make(
            name: "lamp",
            lifetime: .seconds(3600),
            now: ServiceClock().now()
        )
        let code = try #require(invitations.first).code.text
        let folder = DeviceFolder("\(temporary.path)/device-\(UUID().uuidString)")
        let service = ServiceAddress(host: "localhost", port: try #require(addresses.activation))
        var activation = DeviceActivation(service: service, folder: folder)
        activation.timeout = .patience
        return (folder, try await activation.activate(code: code).id)
    }

    private func client(of folder: DeviceFolder) throws -> DeviceClient {
        var configuration = DeviceConfiguration(host: "", port: 0, credential: try folder.credential())
        configuration.folder = folder
        // It asks for the announcement before it registers the app.
        configuration.apps = [DeviceApp(topic: try #require(Topic(Self.app)))]
        configuration.reconnection.shortestPause = .milliseconds(10)
        (configuration.connectTimeout, configuration.answerTimeout) = (.patience, .patience)
        return try DeviceClient(configuration)
    }

    /// Runs a client until an event is the last that is wanted.
    private func events(of client: DeviceClient, until isLast: (DeviceEvent) throws -> Bool) async throws {
        do {
            try await client.run { event in
                if try isLast(event) { throw Ended() }
            }
        } catch is Ended {}
    }

    /// Adds an authority to those that devices trust.
    private func add(_ authority: CertificateAuthority, to trust: TrustFolder) throws {
        let present = try TrustFile.read(trust.layout.authority, .open)
        try TrustFile.write(present + DeviceFolder.pem([authority.der]), to: trust.layout.authority, .open)
    }

    /// Replaces a service's certificate and authority by those of another one.
    private func replaceServer(of trust: TrustFolder, by other: TestTrust) throws {
        try TrustFile.write(try TrustFile.read(other.folder.layout.server, .secret), to: trust.layout.server, .secret)
        try TrustFile.write(DeviceFolder.pem([other.folder.root.der]), to: trust.layout.authority, .open)
    }
}

extension DeviceFolder {
    /// Finds the service at the ports that it has got after its restart.
    fileprivate func find(_ addresses: ListeningAddresses) throws {
        let (port, activation) = (try #require(addresses.device), try #require(addresses.activation))
        var known = try service()
        known.announced = [.init(host: "localhost", port: port, activation: activation)]
        try TrustFile.write(Array(try JSONEncoder().encode(known)), to: servicePath, .open)
    }
}
