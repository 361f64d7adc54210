package import HeraldModel

/// A notification in the post office's hands, with the provider's request that waits for word of it.
///
/// A class, so that gateway, store and courier pass one reference along instead of copying it.
package final class Letter: Sendable {
    package let notification: Notification
    /// Who is told that the notification is safe; nil if nobody waits (a notification read back from the store).
    package let receipt: Receipt?

    package init(_ notification: Notification, receipt: Receipt? = nil) {
        self.notification = notification
        self.receipt = receipt
    }
}

/// The right to one answer: settled exactly once, when the notification is acknowledged, stored, or cannot be stored.
package struct Receipt: Sendable {
    package let desk: any ReceiptDesk
    /// Means something to the desk only (a stream of a connection, say).
    package let number: UInt64

    package init(desk: any ReceiptDesk, number: UInt64) {
        self.desk = desk
        self.number = number
    }

    package func settle(_ outcome: ReceiptOutcome) {
        desk.settle(number, outcome)
    }
}

/// What a provider is told in the end.
package enum ReceiptOutcome: Hashable, Sendable {
    /// The notification is acknowledged by the device, stored, or was not to be stored and has been tried.
    case accepted
    /// It could not be stored.
    case refused(Rejection)
}

/// A door that waits for receipts.
///
/// Called from any thread, under a lock of the post office: it notes the outcome for its own event loop and returns at
/// once.
package protocol ReceiptDesk: AnyObject, Sendable {
    func settle(_ number: UInt64, _ outcome: ReceiptOutcome)
}
