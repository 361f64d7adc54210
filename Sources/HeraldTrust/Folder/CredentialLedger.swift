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
        /// A device, and the invitation that it came by: one entry, so that no crash leaves a device whose code still works.
        case device(EnrolledDevice, invitation: String? = nil)
        /// A further certificate of a device.
        case deviceRenewed(DeviceID, serial: String, expires: WallTime, at: WallTime)
        case invitation(Invitation)
        case invitationWithdrawn(id: String, at: WallTime)
        case credentialRevoked(id: String, at: WallTime)
        case deviceRevoked(DeviceID, at: WallTime)
    }

    /// All that the ledger says, put together.
    package struct Contents: Hashable, Sendable {
        /// In the order in which they were made.
        package var credentials: [Credential] = []
        package var devices: [EnrolledDevice] = []
        package var invitations: [Invitation] = []
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
        var invitationPlaces: [String: Int] = [:]
        for event in try events() {
            switch event {
            case .begun: break
            case .credential(let credential):
                credentialPlaces[credential.id] = contents.credentials.count
                contents.credentials.append(credential)
            case .device(let device, let invitation):
                devicePlaces[device.id] = contents.devices.count
                contents.devices.append(device)
                if let place = invitation.flatMap({ invitationPlaces[$0] }) {
                    contents.invitations[place].used = Invitation.Use(device: device.id, at: device.created)
                }
            case .deviceRenewed(let id, let serial, let expires, _):
                if let place = devicePlaces[id] { contents.devices[place].renew(serial: serial, expires: expires) }
            case .invitation(let invitation):
                invitationPlaces[invitation.id] = contents.invitations.count
                contents.invitations.append(invitation)
            case .invitationWithdrawn(let id, let moment):
                if let place = invitationPlaces[id] { contents.invitations[place].withdrawn = moment }
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
        try append([event])
    }

    /// Adds entries; they are durable when this returns, and if it throws, the first of them may be.
    func append(_ events: [Event]) throws {
        let line = try events.flatMap { try CredentialLedger.line($0) }
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
            guard let event = (try? decoder.decode(LedgerLine.self, from: Data(line)))?.entry else {
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
        return Array(try encoder.encode(LedgerLine(event))) + [UInt8(ascii: "\n")]
    }
}
