package import HeraldModel

extension PushType {
    /// The push type's number in stored notifications.
    ///
    /// Numbers are part of the stores' formats and never reused.
    package var storedCode: UInt8 {
        switch self {
        case .alert: 1
        case .background: 2
        case .complication: 3
        case .controls: 4
        case .fileprovider: 5
        case .liveactivity: 6
        case .location: 7
        case .mdm: 8
        case .pushtotalk: 9
        case .voip: 10
        case .widgets: 11
        }
    }

    /// The push type of a number; nil if there is none.
    package init?(storedCode: UInt8) {
        guard let kind = PushType.allCases.first(where: { $0.storedCode == storedCode }) else { return nil }
        self = kind
    }
}
