/// The limits of broadcast channels.
package struct ChannelServiceConfiguration: Sendable {
    /// Limit of channels of an app in one environment, used or not.
    ///
    /// 10,000, as APNs.
    package var channelsPerApp = 10_000
    /// Limit of channels in all.
    ///
    /// 50,000: all are in memory, each with a message of up to 5 KiB, which makes 250 MiB.
    package var channelsInAll = 50_000
    /// Longest storage of a channel's newest message.
    ///
    /// 8 hours, as APNs.
    package var longestStorage: Duration = .seconds(8 * 3600)
    /// Limit of broadcasts under way to event loops; past it the answer is 429.
    ///
    /// 1,000: some 5 MB of payloads, which ten thousand connected devices take in a minute or two.
    package var broadcastsUnderWay = 1000
    /// Interval between expiry sweeps.
    package var expirySweep: Duration = .seconds(30)

    package init() {}
}
