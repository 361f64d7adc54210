package import HeraldMailbox
package import HeraldModel

/// The clock of a service, as `--clock` names it.
package enum ClockSetting: Hashable, Sendable {
    /// The system's clock, which cannot be moved.
    case system
    /// The system's time plus an offset; can be moved.
    case shifted(by: Duration)
    /// Starts at this time when the service starts; can be moved.
    case beginning(at: WallTime)

    /// Reads `system`, `adjustable` (the same as `+0s`), `+1h`, `-7d`, or a moment: `2026-11-21T00:00:00Z` or UNIX
    /// seconds; nil for every other text.
    init?(_ text: String) {
        switch text {
        case "system":
            self = .system
        case "adjustable":
            self = .shifted(by: .zero)
        case _ where text.hasPrefix("+"):
            guard let duration = DurationText.read(text.dropFirst()) else { return nil }
            self = .shifted(by: duration)
        case _ where text.hasPrefix("-"):
            guard let duration = DurationText.read(text.dropFirst()) else { return nil }
            self = .shifted(by: .zero - duration)
        default:
            if let moment = WallTime(rfc3339: text) {
                self = .beginning(at: moment)
            } else if !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isNumber }), let seconds = Int64(text) {
                self = .beginning(at: WallTime(seconds: seconds))
            } else {
                return nil
            }
        }
    }

    /// The setting as ``init(_:)`` reads it.
    var text: String {
        switch self {
        case .system: "system"
        case .shifted(by: .zero): "adjustable"
        case .shifted(let duration):
            duration < .zero ? "-\(DurationText.write(.zero - duration))" : "+\(DurationText.write(duration))"
        case .beginning(let moment): moment.rfc3339
        }
    }

    /// The clock of a service that starts now.
    package func makeClock() -> ServiceClock {
        switch self {
        case .system: ServiceClock()
        case .shifted(let duration): ServiceClock(offset: duration, isAdjustable: true)
        case .beginning(let moment): ServiceClock(offset: moment - ServiceClock().now(), isAdjustable: true)
        }
    }
}
