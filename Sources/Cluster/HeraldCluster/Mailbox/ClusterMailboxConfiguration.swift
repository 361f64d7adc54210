/// The limits of a ``ClusterMailbox``.
package struct ClusterMailboxConfiguration: Sendable {
    /// As ``ClusterLimits/putDeadline``.
    package var deadline = ClusterLimits.putDeadline
    /// As ``ClusterLimits/putRetry``.
    package var retry = ClusterLimits.putRetry
    /// As ``ClusterLimits/putsInFlight``.
    package var putsInFlight = ClusterLimits.putsInFlight
}
