import HeraldDevice
import HeraldJSON
import HeraldModel

/// Apps on the local socket.
extension DeviceAgent {
    func register(_ topic: Topic, wants: [NotificationKind]?, _ peer: LocalPeer) throws {
        let former = peers.updateValue(peer, forKey: topic)
        if let former, former.id != peer.id {
            former.send(LocalMessage.event("replaced", ["topic": .string(topic.name)]))
        }
        do {
            try apply { phone, now in try phone.appConnected(topic, wants: wants, now) }
        } catch {
            peers[topic] = former
            throw error
        }
    }

    func move(_ topic: Topic, to state: AppState, _ peer: LocalPeer) throws {
        try check(topic, peer)
        try apply { phone, _ in
            try phone.appMoved(topic, to: state)
            return []
        }
    }

    func done(_ topic: Topic, apnsID: String, outcome: DisplayRecord.BackgroundOutcome, _ peer: LocalPeer) throws {
        try check(topic, peer)
        try apply { phone, now in try phone.done(topic, apnsID: apnsID, outcome, now) }
    }

    /// Closes a connection, and disconnects its apps.
    func closed(_ peer: LocalPeer) {
        for (topic, owner) in peers where owner.id == peer.id {
            peers[topic] = nil
            try? apply { phone, now in phone.appDisconnected(topic, now) }
        }
        connections -= 1
    }

    /// - Returns: The number of a new connection; nil if there are too many.
    func openConnection(limit: Int) -> Int? {
        guard connections < limit else { return nil }
        connections += 1
        return nextID()
    }

    var languages: [String] { phone.state.languages }

    private func check(_ topic: Topic, _ peer: LocalPeer) throws {
        guard peers[topic]?.id == peer.id else {
            throw DeviceError(.notPossible, "\(topic) is not registered on this connection: send \"register\" first")
        }
    }
}
