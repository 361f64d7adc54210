import UnixSignals

/// Stops a service at SIGTERM or SIGINT, also during its start, as a node of a cluster waits for servers.
package actor StopSignals {
    private let signals: UnixSignalsSequence
    private var stop: (@Sendable () async -> Void)?
    /// Whether a signal has come.
    package private(set) var isStopping = false

    /// Begins to trap the signals.
    package init() async { signals = await UnixSignalsSequence(trapping: .sigterm, .sigint) }

    /// Waits for signals until the task is cancelled.
    package func watch() async {
        for await _ in signals {
            isStopping = true
            await stop?()
        }
    }

    /// Sets how the present part of the service is stopped; at once, if a signal has come before.
    package func onStop(_ stop: @escaping @Sendable () async -> Void) async {
        self.stop = stop
        if isStopping { await stop() }
    }
}
