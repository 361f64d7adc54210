/// The calls and signals of the desktop's notification service and of the bus.
///
/// Desktop Notifications Specification 1.2, "D-Bus Protocol"; D-Bus specification, "Message Bus Messages".
enum NotificationCalls {
    static let name = "org.freedesktop.Notifications"
    private static let path = "/org/freedesktop/Notifications"
    private static let bus = "org.freedesktop.DBus"
    private static let busPath = "/org/freedesktop/DBus"
    /// The expiry timeout that lets the desktop decide.
    private static let ownTimeout: Int32 = -1

    /// A signal of the service or the bus.
    enum Signal: Hashable, Sendable {
        /// The notification service has a new bus name; nil if there is none.
        case owner(String?)
        /// A click on the notification itself, or on the button of that key.
        case invoked(UInt32, key: String)
        case closed(UInt32, reason: UInt32)
    }

    /// The first calls of every connection; the bus answers nothing before `Hello`.
    static func hello(serials: (UInt32, UInt32, UInt32)) -> [BusMessage] {
        let rules = [
            "type='signal',sender='\(bus)',interface='\(bus)',member='NameOwnerChanged',arg0='\(name)'",
            "type='signal',sender='\(name)',interface='\(name)'",
        ]
        return [call(bus, "Hello", serial: serials.0)]
            + zip(rules, [serials.1, serials.2]).map { rule, serial in
                call(bus, "AddMatch", serial: serial, signature: "s") { $0.string(rule) }
            }
    }

    static func capabilities(serial: UInt32) -> BusMessage {
        call(name, "GetCapabilities", serial: serial)
    }

    static func close(_ number: UInt32, serial: UInt32) -> BusMessage {
        call(name, "CloseNotification", serial: serial, signature: "u") { $0.uint32(number) }
    }

    static func notify(_ notice: DesktopNotification, replacing number: UInt32, serial: UInt32) -> BusMessage {
        call(name, "Notify", serial: serial, signature: "susssasa{sv}i") { writer in
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
        }
    }

    /// Decodes a signal; nil for other messages.
    ///
    /// `owner` is the bus name of the service. Signals of other connections are ignored.
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

    /// A call to the service, or to the bus itself; both name their interface as themselves.
    private static func call(
        _ destination: String,
        _ member: String,
        serial: UInt32,
        signature: String = "",
        _ body: (inout BusWriter) -> Void = { _ in }
    ) -> BusMessage {
        var writer = BusWriter()
        body(&writer)
        var message = BusMessage(kind: .call, serial: serial)
        message.destination = destination
        message.path = destination == bus ? busPath : path
        message.interface = destination
        message.member = member
        message.signature = signature
        message.body = writer.bytes
        return message
    }
}
