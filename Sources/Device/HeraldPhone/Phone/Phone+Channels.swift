import HeraldDevice
import HeraldModel

/// Subscriptions of apps to broadcast channels.
extension Phone {
    /// Subscribes an app to a channel; one that is there is asked for again, so that its answer comes again.
    ///
    /// Throws ``DeviceError/Code/notPossible``.
    mutating func subscribe(_ topic: Topic, to id: String, _ now: WallTime) throws -> [PhoneEffect] {
        _ = try app(topic)
        let channel = try channel(id, of: topic)
        let index = state.channels.firstIndex(of: channel) ?? state.channels.endIndex
        if index == state.channels.endIndex {
            guard state.channels.count < limits.channels else {
                throw DeviceError(
                    .notPossible,
                    "this device is subscribed to \(limits.channels) channels already: unsubscribe from one first"
                )
            }
            state.channels.append(PhoneState.Channel(topic: topic, id: channel.id))
            note("\(topic) subscribes to channel \(channel.id)", now)
        }
        state.channels[index].isAsked = true
        state.channels[index].refused = nil
        return [.subscribe(channel)]
    }

    /// Ends the subscription of an app to a channel.
    ///
    /// Throws ``DeviceError/Code/notPossible``.
    mutating func unsubscribe(_ topic: Topic, from id: String, _ now: WallTime) throws -> [PhoneEffect] {
        let channel = try channel(id, of: topic)
        guard let index = state.channels.firstIndex(of: channel) else {
            throw DeviceError(.notPossible, "\(topic) is not subscribed to channel \(channel.id)")
        }
        state.channels.remove(at: index)
        note("\(topic) is not subscribed to channel \(channel.id) any more", now)
        return [.unsubscribe(channel)]
    }

    private func channel(_ id: String, of topic: Topic) throws -> DeviceChannel {
        guard let channel = DeviceChannel(id, of: topic) else {
            throw DeviceError(
                .notPossible,
                "\"\(id.prefix(64))\" is not a channel: write its apns-channel-id, 24 characters of base64"
            )
        }
        return channel
    }

    /// Subscribes a Live Activity that has started, unless there are too many subscriptions.
    mutating func subscribe(activityTo channel: DeviceChannel) -> [PhoneEffect] {
        guard state.channels.firstIndex(of: channel) == nil, state.channels.count < limits.channels else { return [] }
        state.channels.append(PhoneState.Channel(topic: channel.topic, id: channel.id))
        return [.subscribe(channel)]
    }

    /// Ends subscriptions of Live Activities and apps that are gone.
    mutating func endUnusedChannels() -> [PhoneEffect] {
        let apps = Set(state.apps.map(\.topic))
        let isUnused = { [state] (one: PhoneState.Channel) in
            !apps.contains(one.topic)
                || !one.isAsked && !state.activities.all.contains { $0.app == one.topic && $0.channel == one.id }
        }
        let unused = state.channels.filter(isUnused)
        guard !unused.isEmpty else { return [] }
        state.channels.removeAll(where: isUnused)
        return unused.compactMap(\.channel).map { .unsubscribe($0) }
    }

    /// The service has taken a subscription, or refuses it.
    mutating func channelAnswered(_ channel: DeviceChannel, refused reason: String?, _ now: WallTime) -> [PhoneEffect] {
        guard let index = state.channels.firstIndex(of: channel) else { return [] }
        if let reason, state.channels[index].refused != reason {
            note("\(channel.topic) is not subscribed to channel \(channel.id): \(reason)", now)
        }
        state.channels[index].refused = reason
        return [.notifyApp(channel.topic, .channel(channel, refused: reason))]
    }

    /// Notes a broadcast as the newest of its channel.
    /// - Returns: Whether it was that already: the service sends it again on a new connection.
    mutating func noteBroadcast(_ notification: ReceivedNotification) -> Bool {
        guard let channel = notification.channel.flatMap({ DeviceChannel($0, of: notification.topic) }),
            let index = state.channels.firstIndex(of: channel), let id = notification.id?.description
        else { return false }
        defer { state.channels[index].newest = id }
        return state.channels[index].newest == id
    }
}

extension [PhoneState.Channel] {
    func firstIndex(of channel: DeviceChannel) -> Int? {
        firstIndex { $0.topic == channel.topic && $0.id == channel.id }
    }
}
