/// The devices of a service that are not revoked, by whether they have its newest announcement.
package struct AnnouncementCounts: Codable, Hashable, Sendable {
    /// They know every announced authority and address.
    package var ready = 0
    /// They have an earlier announcement.
    package var behind = 0
    /// The operator has told them everything by hand.
    package var told = 0
    /// They have never said which one they have: clients that do not follow announcements, and devices that never came.
    package var silent = 0
    /// Their certificates have expired, so they need an invitation in any case.
    package var expired = 0

    package init() {}

    /// Counts devices with the same knowledge.
    package mutating func add(_ number: Int, _ state: AnnouncementState, isExpired: Bool) {
        switch state {
        case _ where isExpired: expired += number
        case .ready: ready += number
        case .behind: behind += number
        case .told: told += number
        case .silent: silent += number
        }
    }
}

/// A device's knowledge of the newest announcement.
package enum AnnouncementState: String, Codable, CaseIterable, Sendable {
    /// It knows every announced authority and address.
    case ready
    /// It has an earlier announcement.
    case behind
    /// It has never said which one it has, and the operator has told it everything by hand.
    case told
    /// It has never said which one it has.
    case silent

    /// - Parameters:
    ///   - version: The version that the device has; 0 if it has never said so, negative if the operator has told it by hand.
    ///   - complete: The version from which on a device knows everything.
    package init(_ version: Int64, complete: Int64) {
        if version > 0 {
            self = version >= complete ? .ready : .behind
        } else {
            self = version.magnitude >= complete.magnitude ? .told : .silent
        }
    }
}
