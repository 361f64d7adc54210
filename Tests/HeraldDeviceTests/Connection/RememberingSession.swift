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

    mutating func received(_ packet: MQTTPacket) -> [DeviceSession.Effect] {
        session.received(packet, &memory)
    }

    /// Makes a request, and sends it.
    mutating func request(_ change: (inout DeviceMemory) -> Void) -> [DeviceSession.Effect] {
        change(&memory)
        return session.sendRequests(memory)
    }

    mutating func retryFailedRequests() -> [DeviceSession.Effect] {
        session.retryFailedRequests(memory)
    }

    /// The next connection of the same device; the effects of its first moment.
    mutating func connectAgain(receiveMaximum: UInt16 = .max) -> [DeviceSession.Effect] {
        session = DeviceSession(configuration)
        return session.received(.connack(MQTTConnack(properties: [.receiveMaximum(receiveMaximum)])), &memory)
    }
}
