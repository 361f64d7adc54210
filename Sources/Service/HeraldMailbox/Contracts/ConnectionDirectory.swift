package import HeraldModel
import Synchronization

/// The node of a cluster that holds a device's connection.
///
/// ``SingleNodeDirectory`` only issues fences. A cluster's directory appends each claim to the log that all nodes follow. The
/// fence is the claim's sequence there, so that the last claim wins. When a node has stored a notification, it notifies the
/// node of the device. No wake-up is lost: a node stores before it notifies, and claims before it reads the mailbox.
package protocol ConnectionDirectory: Sendable {
    /// Sets the holder of this node's connections, once. The directory does not retain it.
    func serve(_ holder: any ConnectionHolder)

    /// Claims a device's connection for this node, if its client is still there.
    ///
    /// The client is asked before each attempt to claim: a node that stood still, or whose log is slow, may come to a CONNECT
    /// long after its client has connected elsewhere.
    ///
    /// `done` is called once, from any thread, possibly before this returns: with a fence greater than every earlier
    /// one of the device, with ``ClientGone``, or with an error if the claim could not be written. The device is
    /// refused then, and tries again.
    func claim(
        _ device: DeviceNumber,
        for client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void
    )

    /// Releases the claim with this fence; nothing happens if there is a newer one.
    func release(_ device: DeviceNumber, fence: UInt64)

    /// Whether no newer claim than this one is known.
    func holds(_ device: DeviceNumber, fence: UInt64) -> Bool

    /// Whether another node that lives has claimed a device.
    func isHeldElsewhere(_ device: DeviceNumber) -> Bool

    /// Notifies the nodes of devices that notifications were stored. Returns at once; a lost message only costs time.
    func notifyHolders(of puts: [StoredPut])

    /// Passes a notification that is never stored to the node of its device; with a result whether it has taken it.
    ///
    /// Returns at once. `done` is called once, later, from any thread.
    func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (_ isTaken: Bool) -> Void)
}

/// Asks whether the client of a CONNECT still waits for its CONNACK.
///
/// `done` is called once, from any thread: with the time since the client's last bytes came, or nil if it has closed the
/// connection or has probably given up.
package typealias ClientCheck = @Sendable (_ done: @escaping @Sendable (_ silence: Duration?) -> Void) -> Void

/// The error for a CONNECT whose client has gone, or may have connected to another node since.
package struct ClientGone: Error, Hashable {
    package init() {}
}

/// The connections of a node, for its directory.
package protocol ConnectionHolder: AnyObject, Sendable {
    /// Another node has stored a notification for a device that this node holds: delivers it, as its own.
    ///
    /// `isNews` says whether no read that has begun had to contain it; asked while no read of the device can begin.
    /// - Returns: Whether the registration is known here; if not, nothing was done.
    func storedElsewhere(_ stored: StoredNotification, isNews: () -> Bool) -> Bool

    /// Delivers a notification that is never stored, on behalf of another node.
    func deliverOnce(_ envelope: Envelope) -> PassedDelivery

    /// Ends a connection, because another node has claimed its device since.
    func letGo(_ device: DeviceNumber, fence: UInt64)
}

/// The outcome of a notification that another node has passed on.
package enum PassedDelivery: Hashable, Sendable {
    /// This node has taken it: its end is in the journal here.
    case taken
    /// The device is not connected here.
    case notHere
    /// The registration is not known here.
    case unknownRegistration
}

/// The directory of a service of one process: every device is connected here or nowhere.
package final class SingleNodeDirectory: ConnectionDirectory {
    private let lastFence = Atomic<UInt64>(0)

    package init() {}

    package func claim(
        _ device: DeviceNumber,
        for client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void
    ) {
        client { [self] silence in
            guard silence != nil else { return done(.failure(ClientGone())) }
            done(.success(lastFence.wrappingAdd(1, ordering: .relaxed).newValue))
        }
    }

    package func holds(_ device: DeviceNumber, fence: UInt64) -> Bool { true }

    package func isHeldElsewhere(_ device: DeviceNumber) -> Bool { false }

    package func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (_ isTaken: Bool) -> Void) { done(false) }

    // No other node.
    package func serve(_ holder: any ConnectionHolder) {}
    package func release(_ device: DeviceNumber, fence: UInt64) {}
    package func notifyHolders(of puts: [StoredPut]) {}
}
