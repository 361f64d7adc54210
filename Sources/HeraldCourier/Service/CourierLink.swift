import HeraldDoor
package import HeraldMailbox
package import HeraldTrust
import NIOCore
import Synchronization

/// A connection as other threads see it: they leave orders, and its event loop carries them out.
package final class CourierLink: DeviceLink {
    package let identity: DeviceIdentity
    private let inbox: LoopInbox<LinkOrder>
    private let hasRefusedRegistration = Atomic(false)
    private let handler: NIOLoopBound<SessionHandler>

    /// Made on the event loop of the connection.
    init(identity: DeviceIdentity, inbox: LoopInbox<LinkOrder>, handler: NIOLoopBound<SessionHandler>) {
        self.identity = identity
        self.inbox = inbox
        self.handler = handler
    }

    package func deliver(_ delivery: Delivery) {
        inbox.leave(LinkOrder(link: self, content: .deliver(delivery)))
    }

    package func dismiss(_ reason: DismissalReason) {
        inbox.leave(LinkOrder(link: self, content: .dismiss(reason)))
    }

    /// The device is sent the tokens of the newest key, unless it has them.
    func renewTokens() {
        inbox.leave(LinkOrder(link: self, content: .renewTokens))
    }

    /// Whether this is the connection's first registration that is refused: the log is told once.
    func reportsRegistrationRefusal() -> Bool {
        !hasRefusedRegistration.exchange(true, ordering: .relaxed)
    }

    /// A request of the session is done.
    func complete(_ result: SessionResult) {
        inbox.leave(LinkOrder(link: self, content: .complete(result)))
    }

    /// On the event loop: carries out one order, without flushing.
    func carryOut(_ content: LinkOrder.Content) {
        handler.value.carryOut(content)
    }

    /// On the event loop: sends what the orders of this turn wrote.
    func flush() {
        handler.value.flush()
    }
}

/// Something that is left for a connection.
struct LinkOrder: Sendable {
    enum Content: Sendable {
        case deliver(Delivery)
        case dismiss(DismissalReason)
        /// The token key has changed.
        case renewTokens
        // Rare and large.
        indirect case complete(SessionResult)
    }

    let link: CourierLink
    let content: Content
}
