import HeraldModel
import HeraldWire

/// The MQTT 5 properties of notifications and broadcasts.
extension MQTTPropertyBlock {
    mutating func describe(_ notification: Notification, now: WallTime) {
        clear()
        if let storedUntil = notification.storedUntil { appendMessageExpiry(storedUntil, now: now) }
        appendContentType("application/json")
        appendUserProperty("apns-id", notification.id.canonicalBytes)
        appendUserProperty("apns-push-type", notification.pushType.text)
        appendUserProperty("apns-priority", notification.priority.text)
        if let collapseID = notification.collapseID {
            appendUserProperty("apns-collapse-id", Array(collapseID.text.utf8))
        }
    }

    mutating func describe(_ broadcast: Broadcast, now: WallTime) {
        clear()
        if let storedUntil = broadcast.storedUntil { appendMessageExpiry(storedUntil, now: now) }
        appendContentType("application/json")
        appendUserProperty("apns-request-id", broadcast.id.canonicalBytes)
        appendUserProperty("apns-unique-id", broadcast.uniqueID.canonicalBytes)
        appendUserProperty("apns-push-type", PushType.liveactivity.text)
        appendUserProperty("apns-priority", broadcast.priority.text)
    }

    /// Appends the remaining time ([MQTT-3.3.2-6]); at least a second, since 0 would mean that it is over.
    private mutating func appendMessageExpiry(_ storedUntil: WallTime, now: WallTime) {
        let left = ((storedUntil - now).wholeMilliseconds + 999) / 1000
        appendMessageExpiryInterval(UInt32(clamping: max(1, left)))
    }
}

// The raw values as bytes that need no conversion: these are written with every notification.

extension PushType {
    var text: StaticString {
        switch self {
        case .alert: "alert"
        case .background: "background"
        case .complication: "complication"
        case .controls: "controls"
        case .fileprovider: "fileprovider"
        case .liveactivity: "liveactivity"
        case .location: "location"
        case .mdm: "mdm"
        case .pushtotalk: "pushtotalk"
        case .voip: "voip"
        case .widgets: "widgets"
        }
    }
}

extension Priority {
    var text: StaticString {
        switch self {
        case .immediate: "10"
        case .conserving: "5"
        case .low: "1"
        }
    }
}
