/// The calls and signals of the desktop's notification service, and those of the bus itself that lead to it.
///
/// Desktop Notifications Specification 1.2, "D-Bus Protocol"; D-Bus specification, "Message Bus Messages".
enum NotificationService {
    static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    private static let bus = "org.freedesktop.DBus"
    private static let busPath = "/org/freedesktop/DBus"
    /// What the desktop shows the notification for as long as it likes.
    private static let ownTimeout: Int32 = -1

    /// What the service, or the bus, says unasked.
    enum Signal: Hashable, Sendable {
        /// Another connection is the notification service now; nil if none is.
        case owner(String?)
        /// A click: on the notification itself, or on the button of that key.
        case invoked(UInt32, key: String)
        case closed(UInt32, reason: UInt32)
    }

    /// The calls that every connection begins with; the bus answers nothing before the first.
    static func hello(serials: (UInt32, UInt32, UInt32)) -> [BusMessage] {
        let rules = [
            "type='signal',sender='\(bus)',interface='\(bus)',member='NameOwnerChanged',arg0='\(name)'",
            "type='signal',sender='\(name)',interface='\(name)'",
        ]
        return [call(bus, busPath, bus, "Hello", serials.0)]
            + zip(rules, [serials.1, serials.2]).map { rule, serial in
                var match = call(bus, busPath, bus, "AddMatch", serial)
                var writer = BusWriter()
                writer.string(rule)
                match.signature = "s"
                match.body = writer.bytes
                return match
            }
    }

    static func capabilities(serial: UInt32) -> BusMessage {
        call(name, path, name, "GetCapabilities", serial)
    }

    static func close(_ number: UInt32, serial: UInt32) -> BusMessage {
        var message = call(name, path, name, "CloseNotification", serial)
        var writer = BusWriter()
        writer.uint32(number)
        message.signature = "u"
        message.body = writer.bytes
        return message
    }

    static func notify(_ notice: DesktopNotice, replacing number: UInt32, serial: UInt32) -> BusMessage {
        var message = call(name, path, name, "Notify", serial)
        var writer = BusWriter()
        writer.string(notice.app)
        writer.uint32(number)
        writer.string(notice.icon ?? "")
        writer.string(notice.summary)
        writer.string(notice.body)
        writer.array(alignment: 4) { writer in
            for button in notice.buttons {
                writer.string(button.key)
                writer.string(button.label)
            }
        }
        writer.array(alignment: 8) { writer in
            func hint(_ name: String, _ type: String, _ value: (inout BusWriter) -> Void) {
                writer.align(8)
                writer.string(name)
                writer.signature(type)
                value(&writer)
            }
            hint("urgency", "y") { $0.byte(notice.urgency.rawValue) }
            switch notice.sound {
            case .none: hint("suppress-sound", "b") { $0.boolean(true) }
            case .standard: hint("sound-name", "s") { $0.string("message-new-instant") }
            case .file(let path): hint("sound-file", "s") { $0.string(path) }
            }
        }
        writer.int32(ownTimeout)
        message.signature = "susssasa{sv}i"
        message.body = writer.bytes
        return message
    }

    /// The signal that a message is; nil for others.
    ///
    /// `owner` is the connection that is the service: what others send is not the service's.
    static func signal(_ message: BusMessage, owner: String?) -> Signal? {
        guard message.kind == .signal else { return nil }
        var reader = message.reader
        switch (message.sender, message.interface, message.member, message.signature) {
        case (bus, bus, "NameOwnerChanged", "sss"):
            guard reader.string() == name, reader.string() != nil, let new = reader.string() else { return nil }
            return .owner(new.isEmpty ? nil : new)
        case (owner, name, "ActionInvoked", "us") where owner != nil:
            guard let number = reader.uint32(), let key = reader.string() else { return nil }
            return .invoked(number, key: key)
        case (owner, name, "NotificationClosed", "uu") where owner != nil:
            guard let number = reader.uint32(), let reason = reader.uint32() else { return nil }
            return .closed(number, reason: reason)
        default: return nil
        }
    }

    private static func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ serial: UInt32
    ) -> BusMessage {
        var message = BusMessage(kind: .call, serial: serial)
        message.destination = destination
        message.path = path
        message.interface = interface
        message.member = member
        return message
    }
}
