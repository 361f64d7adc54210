import HeraldWire

@testable import HeraldDevice

/// A session with the memory of its device.
struct RememberingSession {
    var memory: DeviceMemory
    private let configuration: DeviceConfiguration
    private var session: DeviceSession

    init(_ configuration: DeviceConfiguration) {
        self.configuration = configuration
        session = DeviceSession(configuration)
        memory = DeviceMemory(apps: configuration.apps)
    }

    var connect: MQTTPacket { session.connect }

    mutating func received(_ packet: MQTTPacket) -> [DeviceSession.Order] {
        session.received(packet, &memory)
    }

    /// Wishes something, as a device may at any time, and tells the service.
    mutating func wish(_ change: (inout DeviceMemory) -> Void) -> [DeviceSession.Order] {
        change(&memory)
        return session.tell(memory)
    }

    mutating func tellAgain() -> [DeviceSession.Order] {
        session.tellAgain(memory)
    }

    /// The next connection of the same device; the orders of its first moment.
    mutating func connectAgain(receiveMaximum: UInt16 = .max) -> [DeviceSession.Order] {
        session = DeviceSession(configuration)
        return session.received(.connack(MQTTConnack(properties: [.receiveMaximum(receiveMaximum)])), &memory)
    }
}
