import Foundation
import HeraldModel

/// What was issued and revoked, in the order in which it happened: one JSON object per line, each durable before what it
/// tells of is handed out.
package struct CredentialLedger: Sendable {
    /// One entry.
    enum Event: Hashable, Sendable {
        /// The first entry of every ledger, so that one that lost its content is not taken for a new one.
        case begun(at: WallTime)
        /// A provider certificate, or a provider key.
        case credential(Credential)
        case device(EnrolledDevice)
        case credentialRevoked(id: String, at: WallTime)
        case deviceRevoked(DeviceID, at: WallTime)
    }

    /// All that the ledger says, put together.
    package struct Contents: Hashable, Sendable {
        /// In the order in which they were made.
        package var credentials: [Credential] = []
        package var devices: [EnrolledDevice] = []
    }

    let path: String

    /// Reads the ledger.
    ///
    /// A last line without its line feed was being written when the power went, so nothing came of what it tells; it is
    /// passed over.
    /// - Throws: ``TrustError/Code/damaged`` with the number of the line that cannot be read.
    package func read() throws -> Contents {
        var contents = Contents()
        var credentialPlaces: [String: Int] = [:]
        var devicePlaces: [DeviceID: Int] = [:]
        for event in try events() {
            switch event {
            case .begun: break
            case .credential(let credential):
                credentialPlaces[credential.id] = contents.credentials.count
                contents.credentials.append(credential)
            case .device(let device):
                devicePlaces[device.id] = contents.devices.count
                contents.devices.append(device)
            case .credentialRevoked(let id, let moment):
                if let place = credentialPlaces[id] { contents.credentials[place].revoked = moment }
            case .deviceRevoked(let id, let moment):
                if let place = devicePlaces[id] { contents.devices[place].revoked = moment }
            }
        }
        return contents
    }

    /// Adds an entry; it is durable when this returns.
    func append(_ event: Event) throws {
        let line = try CredentialLedger.line(event)
        // A torn line is cut off before the next is written, or it would spoil that one too.
        let present = TrustFile.exists(path) ? try TrustFile.read(path, .secret) : []
        let whole = present.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        try TrustFile.append(line, to: path, keep: whole == present.count ? nil : whole)
    }

    private func events() throws -> [Event] {
        let bytes = try TrustFile.read(path, .secret)
        var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // What stands after the last line feed: nothing, or the torn line.
        lines.removeLast()
        let decoder = JSONDecoder()
        let events = try lines.enumerated().map { number, line in
            guard let event = (try? decoder.decode(Line.self, from: Data(line)))?.entry else {
                throw TrustError(
                    .damaged,
                    "line \(number + 1) of \(path) cannot be read: restore the file from a backup, or mend the line"
                )
            }
            return event
        }
        guard case .begun? = events.first else {
            throw TrustError(.damaged, "\(path) has lost its beginning: restore the file from a backup")
        }
        return events
    }

    /// Makes the file, with its first entry.
    func begin(at moment: WallTime) throws {
        try TrustFile.write(try CredentialLedger.line(.begun(at: moment)), to: path, .secret)
    }

    private static func line(_ event: Event) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(Line(event))) + [UInt8(ascii: "\n")]
    }
}

/// An entry as it is written.
private struct Line: Codable {
    var event: String
    var id: String
    var at: String
    var serial: String?
    var team: String?
    var topics: [Topic]?
    var environments: [PushEnvironment]?
    var name: String?
    var expires: String?

    init(_ event: CredentialLedger.Event) {
        switch event {
        case .begun(let moment):
            self.event = "begun"
            id = "ledger"
            at = moment.rfc3339
        case .credential(let credential):
            self.event = credential.kind == .key ? "provider key" : "provider certificate"
            id = credential.id
            at = credential.created.rfc3339
            serial = credential.serial
            team = credential.team
            topics = credential.topics
            environments = credential.environments.sorted { $0.rawValue < $1.rawValue }
            expires = credential.expires?.rfc3339
        case .device(let device):
            self.event = "device"
            id = device.id.name
            at = device.created.rfc3339
            serial = device.serial
            name = device.name
            expires = device.expires.rfc3339
        case .credentialRevoked(let id, let moment):
            self.event = "credential revoked"
            self.id = id
            at = moment.rfc3339
        case .deviceRevoked(let device, let moment):
            self.event = "device revoked"
            id = device.name
            at = moment.rfc3339
        }
    }

    /// The entry; nil if the line lacks something, or says something that cannot be.
    var entry: CredentialLedger.Event? {
        guard let moment = WallTime(rfc3339: at) else { return nil }
        switch event {
        case "begun":
            return .begun(at: moment)
        case "provider certificate":
            guard let serial, Hex.bytes(serial) != nil, let expires = expires.flatMap(WallTime.init(rfc3339:)) else {
                return nil
            }
            return credential(.certificate, serial: serial, created: moment, expires: expires)
        case "provider key":
            return credential(.key, serial: nil, created: moment, expires: nil)
        case "device":
            guard let device = DeviceID(id), let serial, Hex.bytes(serial) != nil,
                let expires = expires.flatMap(WallTime.init(rfc3339:))
            else { return nil }
            return .device(EnrolledDevice(id: device, name: name, serial: serial, created: moment, expires: expires))
        case "credential revoked":
            return .credentialRevoked(id: id, at: moment)
        case "device revoked":
            return DeviceID(id).map { .deviceRevoked($0, at: moment) }
        default:
            return nil
        }
    }

    private func credential(
        _ kind: Credential.Kind,
        serial: String?,
        created: WallTime,
        expires: WallTime?
    ) -> CredentialLedger.Event? {
        guard let topics, let environments else { return nil }
        return .credential(
            Credential(
                id: id,
                kind: kind,
                serial: serial,
                team: team,
                topics: topics,
                environments: Set(environments),
                created: created,
                expires: expires
            )
        )
    }
}
