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
    let drills: DrillDesk
    let rules: LiveRules
    let bodies: BodyLoad
    let metrics = GatewayMetrics()

    var channelIntake: ChannelIntake {
        ChannelIntake(admission: admission, rules: rules.current, office: channels)
    }

    /// How many streams are welcome on a connection that has shown who it is.
    var welcomeStreams: Int { drills.streams ?? configuration.http2.concurrentStreams }

    var intake: RequestIntake {
        RequestIntake(
            admission: admission,
            rules: rules.current,
            longestStorage: letterBox.longestStorage
        )
    }
}
