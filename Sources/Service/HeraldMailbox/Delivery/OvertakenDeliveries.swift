/// Chooses the deliveries that are dropped as replaced when the device acknowledges a newer one of the same app first.
///
/// Otherwise an older notification could come back from the store after the newer one, which was never stored. A
/// notification that the store replaces by a newer one is dropped by the store (`WriteBatch.put` of HeraldStores).
struct OvertakenDeliveries {
    /// All that are not stored, then the last that is: of several the store holds only the last.
    let deliveries: [InFlightDelivery]

    init(by newer: InFlightDelivery, in inFlight: InFlightDeliveries) {
        var replaced: [InFlightDelivery] = []
        var lastStored: InFlightDelivery?
        for older in inFlight.inOrder(of: newer.app) where older.order < newer.order {
            switch older.state {
            case .unstored: replaced.append(older)
            case .stored, .storing: lastStored = older
            case .singleAttempt, .finishedWhileStoring, .replaced, .replacedWhileStoring, .ended: break
            }
        }
        if let lastStored { replaced.append(lastStored) }
        deliveries = replaced
    }
}
