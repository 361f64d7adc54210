/// Decides between two connections of one device: the one with the greater fence wins.
///
/// `Takeovers` of HeraldCourier tells the whole story of a takeover.
enum Takeover {
    /// The device had no connection.
    case firstConnection
    /// The new connection replaces this one, which is dismissed.
    case replaces(DeviceConnection)
    /// A newer connection is attached already: the late one is dismissed.
    case comesTooLate

    init(of current: DeviceConnection?, byFence fence: UInt64) {
        self =
            switch current {
            case nil: .firstConnection
            case let current? where current.fence < fence: .replaces(current)
            case _?: .comesTooLate
            }
    }
}
