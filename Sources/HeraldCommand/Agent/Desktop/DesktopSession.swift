import Foundation
import HeraldDevice
import NIOCore

/// One connection to the session bus: has ``DesktopPlan`` decide, and puts what it decides into calls, in that order.
actor DesktopSession {
    private let channel: any Channel
    private let say: @Sendable (String) -> Void
    private var plan: DesktopPlan
    private var serial: UInt32 = 0
    /// The calls of `Notify` that are not answered, and what they show; ``DesktopPlan`` bounds them.
    private var asked: [UInt32: String] = [:]
    /// The call of `GetCapabilities` whose answer counts.
    private var capabilitiesCall: UInt32?
    /// The connection that is the notification service.
    private var owner: String?

    init(_ channel: any Channel, start: Double, say: @escaping @Sendable (String) -> Void) {
        self.channel = channel
        self.say = say
        plan = DesktopPlan(start: start)
    }

    /// Says who wants in.
    func greet() {
        write(BusStream.greeting(user: geteuid()))
    }

    /// The device looks like this now.
    func see(_ snapshot: PhoneSnapshot, files: DesktopPlan.Files) {
        perform(plan.see(snapshot, files: files))
    }

    /// Something came from the bus.
    /// - Returns: What the user does with it on the device.
    func take(_ event: BusStream.Event) -> PhoneAction? {
        switch event {
        case .accepted(let answer):
            write(answer)
            for message in NotificationService.hello(serials: (next(), next(), next())) { write(message.encoded) }
            askForCapabilities()
            return nil
        case .message(let message):
            if let call = message.replyTo {
                takeAnswer(message, to: call)
                return nil
            }
            return NotificationService.signal(message, owner: owner).flatMap { take($0) }
        }
    }

    /// Takes away what is shown, and waits until the bus has got that.
    func end() async {
        perform(plan.end())
        try? await channel.writeAndFlush(ByteBuffer())
    }

    private func take(_ signal: NotificationService.Signal) -> PhoneAction? {
        switch signal {
        case .owner(let new):
            guard new == nil || new != owner else { return nil }
            if owner != nil { say("the desktop's notification service went away") }
            owner = nil
            asked = [:]
            if new == nil {
                plan.serviceWent()
            } else {
                plan.serviceIsAwaited()
                askForCapabilities()
            }
            return nil
        case .invoked(let number, let key): return plan.invoked(number, key: key)
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
                    "no notifications on the desktop yet: nothing on the session bus shows them"
                        + " (org.freedesktop.Notifications)"
                )
            }
        } else if let id = asked.removeValue(forKey: call) {
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
        write(NotificationService.capabilities(serial: call).encoded)
    }

    private func perform(_ orders: [DesktopPlan.Order]) {
        for order in orders {
            let call = next()
            switch order {
            case .show(let id, let notice, let number):
                asked[call] = id
                write(NotificationService.notify(notice, replacing: number, serial: call).encoded)
            case .close(let number):
                write(NotificationService.close(number, serial: call).encoded)
            }
        }
    }

    private func next() -> UInt32 {
        serial = serial == .max ? 1 : serial + 1
        return serial
    }

    /// In the order of the calls; what cannot be written ends the connection, which the reader notices.
    private func write(_ bytes: [UInt8]) {
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }
}
