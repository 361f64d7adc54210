import HeraldModel

/// What the post office's refusals mean to a provider.
enum PostRefusal {
    /// The notification could not be stored.
    static let storeTrouble = "it could not be stored, and nothing of it is kept; send it again later"

    /// Its body was dropped (``BodyLoad``).
    static let noRoom = "too much of unfinished requests is held already; end each request before the next"

    static func words(_ rejection: Rejection) -> String {
        switch rejection {
        case .unregistered: "the app was removed from the device; its token is dead for good"
        case .tooManyRequests: "too many notifications for this device token in a short time; wait, then send fewer"
        case .serviceUnavailable: "too much waits, or nothing can be stored at present; send it again later"
        default: "the service refuses it"
        }
    }
}
