/// The state of one app on one connection.
struct AppGate {
    enum State {
        /// Nothing older waits: a notification is delivered at once.
        case direct
        /// The mailbox is being read. New notifications are stored, and the newest that was stored is remembered.
        ///
        /// Only the answer to the read of this number counts: an earlier one is of a gate that was closed since.
        case catchingUp(read: UInt64, newest: StoredPut?)
        /// An older notification waits in the store until the reason is gone. New ones are stored first.
        case blocked(HoldReason)
    }

    var state = State.catchingUp(read: 0, newest: nil)
    var qualityOfService: UInt8 = 0
    /// Writes that the store has not confirmed, of notifications that were not delivered on this connection.
    ///
    /// A new notification is stored behind them. Writes from before the connection count too.
    var unconfirmedWrites: UInt32
    /// The highest sequence that was delivered on this connection: nothing is sent twice.
    var lastSequence: UInt64 = 0
    /// The highest sequence that is known to be stored; a late report about an older one opens no blocked gate.
    var newestStored: UInt64 = 0

    var isBlocked: Bool { if case .blocked = state { true } else { false } }
}
