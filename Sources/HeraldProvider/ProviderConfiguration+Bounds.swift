extension ProviderConfiguration {
    /// The configuration with every time between zero and a year, and every number of one at least: others mean the
    /// nearest that makes sense.
    var bounded: ProviderConfiguration {
        var configuration = self
        func bound(_ time: WritableKeyPath<ProviderConfiguration, Duration>) {
            configuration[keyPath: time] = min(max(configuration[keyPath: time], .zero), .seconds(365 * 86_400))
        }
        for time in [
            \ProviderConfiguration.timeout, \.totalTimeout, \.connections.growAfter, \.connections.pingIdleAfter,
            \.connections.probeAfter, \.connections.pingBusyAfter, \.connections.pingTimeout, \.connections.firstPause,
            \.connections.longestPause, \.retry.firstPause, \.retry.longestPause, \.retry.longestRetryAfter,
        ] {
            bound(time)
        }
        for number in [
            \ProviderConfiguration.maximumWaiting, \.connections.maximum, \.connections.streams,
            \.connections.timeoutsInARow, \.retry.attempts,
        ] {
            configuration[keyPath: number] = max(1, configuration[keyPath: number])
        }
        return configuration
    }
}
