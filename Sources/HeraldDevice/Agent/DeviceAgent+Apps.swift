import HeraldModel

/// What apps on the local socket ask for.
extension DeviceAgent {
    func register(_ topic: Topic, wants: [NotificationKind]?, _ peer: LocalPeer) throws {
        let former = peers.updateValue(peer, forKey: topic)
        if let former, former.id != peer.id {
            former.send(LocalMessage.event("replaced", ["topic": .string(topic.name)]))
        }
        do {
            try carryOut { phone, now in try phone.appeared(topic, wants: wants, now) }
        } catch {
            peers[topic] = former
            throw error
        }
    }

    func move(_ topic: Topic, to state: AppState, _ peer: LocalPeer) throws {
        try check(topic, peer)
        try carryOut { phone, now in
            try phone.moved(topic, to: state, now)
            return []
        }
    }

    func done(_ topic: Topic, _ apnsID: String, _ outcome: SawRecord.BackgroundOutcome, _ peer: LocalPeer) throws {
        try check(topic, peer)
        try carryOut { phone, now in try phone.done(topic, apnsID: apnsID, outcome, now) }
    }

    /// A connection has ended, and with it the apps that were on it.
    func left(_ peer: LocalPeer) {
        for (topic, owner) in peers where owner.id == peer.id {
            peers[topic] = nil
            try? carryOut { phone, now in phone.left(topic, now) }
        }
        connections -= 1
    }

    /// - Returns: The connection's number; nil if there are too many.
    func arrived(atMost limit: Int) -> Int? {
        guard connections < limit else { return nil }
        connections += 1
        lastWatcher += 1
        return lastWatcher
    }

    var languages: [String] { phone.state.languages }

    private func check(_ topic: Topic, _ peer: LocalPeer) throws {
        guard peers[topic]?.id == peer.id else {
            throw DeviceError(.notPossible, "\(topic) is not registered on this connection: send \"register\" first")
        }
    }
}
