/// The limits of broadcast channels.
package struct ChannelOfficeConfiguration: Sendable {
    /// How many channels an app may have in one environment.
    ///
    /// 10,000, as APNs. Channels that are not used count.
    package var channelsPerApp = 10_000
    /// How many channels there may be in all.
    ///
    /// 50,000: all of them are in memory, each with a message of at most 5 KiB, which makes 250 MiB.
    package var channelsInAll = 50_000
    /// How long the newest message of a channel is kept for devices that subscribe later.
    ///
    /// 8 hours, as APNs.
    package var longestStorage: Duration = .seconds(8 * 3600)
    /// How many broadcasts may be on their way to event loops; past it providers are answered 429.
    ///
    /// 1,000: some 5 MB of payloads, and what ten thousand connected devices take in a minute or two.
    package var broadcastsUnderWay = 1000
    /// How often the store is rid of messages that expired.
    package var expirySweep: Duration = .seconds(30)

    package init() {}
}
