package import HeraldListener
package import HeraldMailbox
package import HeraldModel
package import HeraldTrust
import HeraldWire
import NIOCore
import Synchronization

/// An ``MQTTConnection`` as other threads see it: they leave messages, and its event loop handles them.
package final class MQTTConnectionLink: DeviceLink {
    package let identity: DeviceIdentity
    /// The client's address, if it is known.
    package let address: ClientAddress?
    package let connected: WallTime
    private let inbox: LoopInbox<LinkMessage>
    private let hasRefusedRegistration = Atomic(false)
    private let gone = Atomic(false)
    private let connection: NIOLoopBound<MQTTConnection>

    /// Made on the event loop of the connection.
    init(
        identity: DeviceIdentity,
        address: ClientAddress?,
        connected: WallTime,
        inbox: LoopInbox<LinkMessage>,
        connection: NIOLoopBound<MQTTConnection>
    ) {
        self.identity = identity
        self.address = address
        self.connected = connected
        self.inbox = inbox
        self.connection = connection
    }

    /// The device as it is seen at a moment.
    func sighting(at moment: WallTime) -> DeviceSighting {
        DeviceSighting(device: identity.id, at: moment, address: address?.description ?? "")
    }

    package func deliver(_ delivery: Delivery) {
        inbox.add(LinkMessage(link: self, content: .deliver(delivery)))
    }

    package func dismiss(_ reason: DismissalReason) {
        inbox.add(LinkMessage(link: self, content: .dismiss(reason)))
    }

    /// Sends the device the tokens of the newest key, unless it has them.
    func renewTokens() {
        inbox.add(LinkMessage(link: self, content: .renewTokens))
    }

    /// Sends the newest announcement of the service, if the device is subscribed to it.
    func announce() {
        inbox.add(LinkMessage(link: self, content: .announce))
    }

    /// Sends the broadcasts that waited for a certain time.
    func releaseWithheld() {
        inbox.add(LinkMessage(link: self, content: .releaseWithheld))
    }

    /// Whether this is the connection's first refused registration: only that one is logged.
    func reportsRegistrationRefusal() -> Bool {
        !hasRefusedRegistration.exchange(true, ordering: .relaxed)
    }

    /// Whether the connection is gone: nobody waits for an answer.
    var isGone: Bool { gone.load(ordering: .relaxed) }

    func noteGone() { gone.store(true, ordering: .relaxed) }

    /// Asks on the event loop, after what came from the network is read, whether the client still waits; see ``ClientCheck``.
    func ask(_ done: @escaping @Sendable (_ silence: Duration?) -> Void) {
        inbox.add(LinkMessage(link: self, content: .ask(done)))
    }

    /// Answers a request that the connection made of the registry.
    func complete(_ answer: RegistryAnswer) {
        inbox.add(LinkMessage(link: self, content: .complete(answer)))
    }

    /// On the event loop: handles one message, without flushing.
    func handle(_ content: LinkMessage.Content) {
        connection.value.handle(content, through: self)
    }

    /// On the event loop: flushes what the messages of this turn wrote.
    func flush() {
        connection.value.flush()
    }
}

/// A message of another thread for one connection.
struct LinkMessage: Sendable {
    enum Content: Sendable {
        case deliver(Delivery)
        case dismiss(DismissalReason)
        case renewTokens
        case announce
        case releaseWithheld
        case ask(@Sendable (_ silence: Duration?) -> Void)
        // Rare and large.
        indirect case complete(RegistryAnswer)
    }

    let link: MQTTConnectionLink
    let content: Content
}
