import Foundation
import HeraldPhone
import NIOCore

/// One connection to the session bus: performs the effects of ``DesktopPlan`` as calls, in order.
actor DesktopSession {
    private let channel: any Channel
    private let say: @Sendable (String) -> Void
    private var plan: DesktopPlan
    private var serial: UInt32 = 0
    /// The unanswered calls of `Notify` with their notifications; ``DesktopPlan`` limits them.
    private var pending: [UInt32: String] = [:]
    /// The last call of `GetCapabilities`.
    private var capabilitiesCall: UInt32?
    /// The bus name of the notification service.
    private var owner: String?

    init(_ channel: any Channel, known: Set<String>, say: @escaping @Sendable (String) -> Void) {
        self.channel = channel
        self.say = say
        plan = DesktopPlan(known: known)
    }

    /// Starts the authentication.
    func authenticate() {
        write(BusStream.authentication(user: geteuid()))
    }

    func show(_ snapshot: PhoneSnapshot, files: DesktopPlan.Files) {
        perform(plan.show(snapshot, files: files))
    }

    /// Takes an event from the bus.
    /// - Returns: The user's actions on the device.
    func take(_ event: BusStream.Event) -> [PhoneAction] {
        switch event {
        case .accepted(let answer):
            write(answer)
            for message in NotificationCalls.hello(serials: (next(), next(), next())) { write(message.encoded) }
            askForCapabilities()
            return []
        case .message(let message):
            if let call = message.replyTo {
                takeAnswer(message, to: call)
                return []
            }
            return NotificationCalls.signal(message, owner: owner).map { take($0) } ?? []
        }
    }

    /// Removes the notifications from the desktop, and waits until the bus has the calls.
    func end() async {
        perform(plan.end())
        try? await channel.writeAndFlush(ByteBuffer())
    }

    private func take(_ signal: NotificationCalls.Signal) -> [PhoneAction] {
        switch signal {
        case .owner(let new):
            guard new == nil || new != owner else { return [] }
            if owner != nil { say("the desktop's notification service has disappeared") }
            owner = nil
            pending = [:]
            if new == nil {
                plan.serviceWent()
            } else {
                plan.serviceIsAwaited()
                askForCapabilities()
            }
            return []
        case .invoked(let number, let key): return plan.invoked(number, key: key).map { [$0] } ?? []
        case .closed(let number, let reason): return plan.closed(number, DesktopPlan.Closing(rawValue: reason))
        }
    }

    private func takeAnswer(_ message: BusMessage, to call: UInt32) {
        if call == capabilitiesCall {
            capabilitiesCall = nil
            var reader = message.reader
            if message.kind == .reply, message.signature == "as", let capabilities = reader.strings() {
                owner = message.sender
                say("notifications are shown on the desktop")
                perform(plan.serviceCame(Set(capabilities)))
            } else {
                plan.serviceWent()
                say(
                    "no notifications on the desktop yet: the session bus has no notification service"
                        + " (org.freedesktop.Notifications)"
                )
            }
        } else if let id = pending.removeValue(forKey: call) {
            var reader = message.reader
            if message.kind == .reply, message.signature == "u", let number = reader.uint32() {
                perform(plan.shown(id, as: number))
            } else {
                plan.notShown(id)
            }
        }
    }

    private func askForCapabilities() {
        let call = next()
        capabilitiesCall = call
        write(NotificationCalls.capabilities(serial: call).encoded)
    }

    private func perform(_ effects: [DesktopPlan.Effect]) {
        for effect in effects {
            let call = next()
            switch effect {
            case .show(let id, let notice, let number):
                pending[call] = id
                write(NotificationCalls.notify(notice, replacing: number, serial: call).encoded)
            case .close(let number):
                write(NotificationCalls.close(number, serial: call).encoded)
            }
        }
    }

    private func next() -> UInt32 {
        serial = serial == .max ? 1 : serial + 1
        return serial
    }

    /// Writes in the order of the calls; a failure ends the connection, which the reader notices.
    private func write(_ bytes: [UInt8]) {
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }
}
