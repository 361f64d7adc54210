import HeraldModel
import Synchronization

/// The connections of this node, and what is remembered of those that went.
final class ConnectionTable: Sendable {
    private struct State {
        var links: [ObjectIdentifier: CourierLink] = [:]
        /// The newest connection of each device that is let in.
        var fences: [DeviceID: UInt64] = [:]
        var remnants: [DeviceNumber: [DeliveryWindow.Remnant]] = [:]
        var remnantCount = 0
        var whenEmpty: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())
    private let remnantLimit: Int

    /// - Parameter remnantLimit: How many unacknowledged notifications of absent devices are remembered.
    init(remnantLimit: Int) {
        self.remnantLimit = remnantLimit
    }

    func add(_ link: CourierLink) {
        state.withLock { $0.links[ObjectIdentifier(link)] = link }
    }

    func remove(_ link: CourierLink) {
        let continuations = state.withLock { state in
            state.links[ObjectIdentifier(link)] = nil
            guard state.links.isEmpty else { return [AsyncStream<Void>.Continuation]() }
            defer { state.whenEmpty = [] }
            return state.whenEmpty
        }
        for continuation in continuations { continuation.finish() }
    }

    var links: [CourierLink] {
        state.withLock { Array($0.links.values) }
    }

    /// Returns when there is no connection, or when cancelled.
    func untilEmpty() async {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let isEmpty = state.withLock { state in
            if !state.links.isEmpty { state.whenEmpty.append(continuation) }
            return state.links.isEmpty
        }
        guard !isEmpty else { return }
        for await _ in stream {}
    }

    func isLetIn(_ device: DeviceID) -> Bool {
        state.withLock { $0.fences[device] != nil }
    }

    func setFence(_ fence: UInt64, of device: DeviceID) {
        state.withLock { $0.fences[device] = fence }
    }

    /// The connection with this fence has left.
    /// - Returns: Whether it was the device's newest.
    func clearFence(_ fence: UInt64, of device: DeviceID) -> Bool {
        state.withLock { state in
            guard state.fences[device] == fence else { return false }
            state.fences[device] = nil
            return true
        }
    }

    /// Remembers what a device that keeps its session has not acknowledged; nothing past the limit.
    func remember(_ remnants: [DeliveryWindow.Remnant], of device: DeviceNumber) {
        guard !remnants.isEmpty else { return }
        state.withLock { state in
            guard state.remnantCount + remnants.count <= remnantLimit, state.remnants[device] == nil else { return }
            state.remnants[device] = remnants
            state.remnantCount += remnants.count
        }
    }

    /// What was remembered, which is forgotten.
    func takeRemnants(of device: DeviceNumber) -> [DeliveryWindow.Remnant] {
        state.withLock { state in
            guard let remnants = state.remnants.removeValue(forKey: device) else { return [] }
            state.remnantCount -= remnants.count
            return remnants
        }
    }
}
