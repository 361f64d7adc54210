import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging

/// What all provider connections of a gateway share.
struct ProviderService: Sendable {
    let configuration: GatewayConfiguration
    let admission: Admission
    let letterBox: any LetterBox
    /// nil for a gateway that does not broadcast.
    let channels: ChannelOffice?
    let clock: any WallClock
    let logger: Logger
    let metrics = GatewayMetrics()

    var channelIntake: ChannelIntake {
        ChannelIntake(admission: admission, rules: configuration.rules, office: channels)
    }

    var intake: RequestIntake {
        RequestIntake(
            admission: admission,
            rules: configuration.rules,
            longestStorage: letterBox.longestStorage
        )
    }
}
