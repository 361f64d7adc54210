import HeraldModel

/// Decides when a delivery that the device has not acknowledged is stored.
///
/// A delivery has one full tick: it is due at the second tick after it was sent. ``DeliveryShard/tick()`` then stores it
/// (``DeliveryState``, event `storageDue`).
struct AcknowledgementGrace {
    /// Default length of a tick, so a device has 40 to 80 ms.
    ///
    /// With a thousand notifications in flight at 15,000 to 50,000 a second, acknowledgements take 20 to 70 ms, as over most
    /// networks. Storing and removing all of them is about a quarter of the work.
    static let tick: Duration = .milliseconds(40)

    private var thisTick: [(device: DeviceNumber, tag: PutTag)] = []
    private var lastTick: [(device: DeviceNumber, tag: PutTag)] = []

    /// Whether no delivery is waited for.
    var isEmpty: Bool { thisTick.isEmpty && lastTick.isEmpty }

    /// Adds a delivery that was sent without being stored.
    mutating func add(_ tag: PutTag, of device: DeviceNumber) {
        thisTick.append((device, tag))
    }

    /// Ends a tick.
    /// - Returns: The deliveries whose time is over, acknowledged or not.
    mutating func tick() -> [(device: DeviceNumber, tag: PutTag)] {
        defer {
            lastTick = thisTick
            thisTick = []
        }
        return lastTick
    }
}
