import HeraldMailbox
import HeraldModel
import Logging

/// The dependencies and shared state of all provider connections of a gateway.
struct ProviderService: Sendable {
    let configuration: GatewayConfiguration
    let admission: Admission
    let sink: any NotificationSink
    /// nil for a gateway without broadcasts.
    let channels: ChannelService?
    /// Nil for a node that stands alone.
    let confirmations: RefusalConfirmations?
    let clock: any WallClock
    let logger: Logger
    let drills: DrillService
    let catcher: CatchService
    let rules: ReloadableRules
    let bodies: BodyMemory
    let metrics = GatewayMetrics()

    /// The number of streams to advertise to an authenticated connection.
    var streams: Int { drills.streams ?? configuration.http2.concurrentStreams }

    /// Whether this node may be behind with a part of the cluster's state.
    func isBehind(_ part: SharedPart) -> Bool { confirmations?.isBehind(part) ?? false }

    var validator: RequestValidator {
        RequestValidator(admission: admission, rules: rules.current, longestStorage: sink.longestStorage)
    }

    var channelValidator: ChannelRequestValidator {
        ChannelRequestValidator(admission: admission, rules: rules.current, channels: channels)
    }
}
