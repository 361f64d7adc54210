import Foundation
import HeraldDevice
import HeraldJSON
public import HeraldModel

/// The device of a ``LocalApp``: its state, and the actions of its user.
///
/// An app needs little of it. Tests and tools use it to play the user.
public struct LocalDevice: Sendable {
    let client: LocalClient

    /// The visible state of the device.
    /// - Throws: ``DeviceError/Code/unreachable``.
    public func snapshot() async throws -> PhoneSnapshot {
        try Self.decode(PhoneSnapshot.self, from: try await client.ask(["do": .string("device")])["device"])
    }

    /// Requests an event ``LocalApp/Event/device(_:)`` with the present state, and one after each change.
    /// - Throws: ``DeviceError/Code/unreachable``.
    public func watch() async throws {
        try await client.ask(["do": .string("watch")])
    }

    /// The display record of the remote notification with an `apns-id`; waits for it if asked, at most 600 s.
    /// - Throws: ``DeviceError/Code/notPossible`` if it has not arrived by then; ``DeviceError/Code/unreachable``.
    public func displayRecord(of id: NotificationID, within time: Duration = .zero) async throws -> DisplayRecord {
        try await displayRecord("apns_id", id.description, time)
    }

    /// The newest display record of the local notification with an identifier; waits for it if asked, at most 600 s.
    /// - Throws: ``DeviceError/Code/notPossible`` if it was not shown by then; ``DeviceError/Code/unreachable``.
    public func displayRecord(ofLocal name: String, within time: Duration = .zero) async throws -> DisplayRecord {
        try await displayRecord("notification", name, time)
    }

    private func displayRecord(_ member: String, _ name: String, _ time: Duration) async throws -> DisplayRecord {
        let answer = try await client.ask([
            "do": .string("shown"), member: .string(name),
            "wait": try JSON(encoding: Double(time.wholeMilliseconds) / 1000),
        ])
        return try Self.decode(DisplayRecord.self, from: answer["shown"])
    }

    /// Performs an action of the user.
    /// - Throws: ``DeviceError/Code/notPossible`` with an explanation; ``DeviceError/Code/unreachable``.
    public func perform(_ action: PhoneAction) async throws {
        try await client.ask(try action.request())
    }

    /// Reads a part of an answer.
    static func decode<Value: Decodable>(_ type: Value.Type, from part: JSON?) throws -> Value {
        do {
            return try (part ?? .null).decode(type)
        } catch {
            throw DeviceError(.notPossible, "the agent's answer cannot be read: it is of another version")
        }
    }
}
